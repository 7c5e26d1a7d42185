// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// Digits of the number in `rank.<r>`, so that the folders of `size` ranks sort by name.
int rank_digits(int size);

/// Files for every rank's output: `rank.<r>/stdout` and `rank.<r>/stderr` in one directory.
/// Thread: owner.
class LogFiles {
 public:
  /// Creates `directory`, its parents, and all files. Existing files are emptied.
  /// Fails: permission_denied, io and others, naming the path.
  static Result<LogFiles> create(const std::string& directory, int size);

  /// Creates the files of one more rank. Its folder has as many digits as those of the first ranks,
  /// or more. Fails: as create; the rank's output is then written nowhere.
  Status add_rank();

  std::size_t ranks() const { return files_.size() / 2; }

  LogFiles(LogFiles&& other) noexcept = default;
  LogFiles& operator=(LogFiles&& other) noexcept;
  ~LogFiles();

  /// Called for the first write that fails. Later writes are still tried, and fail silently.
  void on_error(std::function<void(const Error&)> task) { on_error_ = std::move(task); }

  /// Few further writes of this rank will come: its files are opened for each of them. Without
  /// this, each rank that an elastic job replaces would hold two descriptors for ever.
  void close_rank(Rank rank);

  /// Blocks: for the disk.
  void write(Rank rank, Stream stream, std::string_view bytes);

 private:
  struct File {
    std::string path;  // Empty: it could not be created.
    // -1: opened for each write, because the process may not hold so many, or the rank has ended.
    int fd = -1;
  };

  LogFiles(std::string directory, int digits, std::size_t most_open)
      : directory_(std::move(directory)), digits_(digits), most_open_(most_open) {}

  static std::size_t index(Rank rank, Stream stream);
  void complain(const File& file, int error);

  Status open_rank(std::size_t rank);

  std::string directory_;
  int digits_ = 1;
  std::size_t most_open_ = 0;
  std::size_t open_ = 0;
  std::vector<File> files_;
  bool failed_ = false;
  std::function<void(const Error&)> on_error_;
};

}  // namespace horo::launcher
