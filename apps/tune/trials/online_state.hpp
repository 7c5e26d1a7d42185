// SPDX-License-Identifier: Apache-2.0
// The file of --resume for a search online: what the runtime keeps of it. During the run, the
// runtime has that in a folder of this process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/common/document.hpp"
#include "apps/tune/trials/job_runs.hpp"
#include "apps/tune/trials/tune_request.hpp"

namespace horo::apps {

/// The words that say which job is tuned.
std::vector<std::string> search_words(const TuneRequest& request);

/// A search online as a file of --resume has it.
struct OnlineSearch {
  std::vector<std::string> command;   ///< As search_words().
  std::vector<std::string> results;   ///< Lines of the runtime's file of results.
  std::vector<std::string> searches;  ///< Lines of its file of unfinished searches.

  friend bool operator==(const OnlineSearch&, const OnlineSearch&) = default;
};

/// JSON. Pure.
std::string online_text(const OnlineSearch& search);

/// Whether the document is of a search online, and not of one by restarts. Pure.
bool is_online_search(const DocumentPart& document);

/// Reads online_text(). `command` is the one that is to be tuned now. Fails: invalid_argument
/// (another command or version, damaged, a search by restarts), with the place in the file.
Result<OnlineSearch> online_of_document(const DocumentPart& document,
                                        const std::vector<std::string>& command);

/// Thread: owner. Without --resume it does nothing.
class OnlineState {
 public:
  /// Gives the runtime what the file has. `log`: a file in a folder that rank 0 can write to.
  /// Blocks: on files. Fails: as online_of_document; io.
  static Result<OnlineState> open(const TuneRequest& request, const std::string& log);

  /// The flags of the job.
  std::vector<std::string> flags() const;

  /// Saves what is new. A search that cannot be saved goes on; a warning says so once.
  void save();

  /// Something is saved that the next call can continue.
  bool has_samples() const { return saved_.searches.size() > kLinesWithout; }

 private:
  /// A file without searches has a first and a last line.
  static constexpr std::size_t kLinesWithout = 2;

  OnlineState() = default;

  std::string file_;
  std::optional<ScratchFolder> folder_;
  OnlineSearch saved_;
  bool warned_ = false;
};

}  // namespace horo::apps
