// SPDX-License-Identifier: Apache-2.0
// Opens the inputs that a user names: files, compressed or not, FIFOs, standard input and folders.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::timeline {

enum class InputFormat { horo, chrome };

/// One input, read from its beginning to its end. Thread: owner. Blocks: for the disk.
class TimelineInput {
 public:
  /// "-": standard input. Fails: not_found, permission_denied, io; invalid_argument (empty, or an
  /// unknown format), naming the path.
  static Result<std::unique_ptr<TimelineInput>> open(const std::string& path);
  ~TimelineInput();
  TimelineInput(const TimelineInput&) = delete;
  TimelineInput& operator=(const TimelineInput&) = delete;

  const std::string& path() const { return path_; }

  InputFormat format() const { return format_; }

  /// Returns 0 at the end. Fails: io (also for damaged compressed data).
  Result<std::size_t> read(char* to, std::size_t room);

 private:
  TimelineInput(std::string path, void* file) : path_(std::move(path)), file_(file) {}

  Status look();

  std::string path_;
  void* file_;  ///< zlib's.
  std::string ahead_;
  InputFormat format_ = InputFormat::chrome;
};

/// Replaces each folder by the timelines below it, sorted. Fails: not_found (a folder without
/// timelines), io.
Result<std::vector<std::string>> expand_paths(const std::vector<std::string>& paths);

}  // namespace horo::timeline
