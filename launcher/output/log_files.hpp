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

  LogFiles(LogFiles&& other) noexcept = default;
  LogFiles& operator=(LogFiles&& other) noexcept;
  ~LogFiles();

  /// Called for the first write that fails. Later writes are still tried, and fail silently.
  void on_error(std::function<void(const Error&)> task) { on_error_ = std::move(task); }

  /// Blocks: for the disk.
  void write(Rank rank, Stream stream, std::string_view bytes);

 private:
  struct File {
    std::string path;
    int fd = -1;  // -1: opened for each write, because the process may not hold so many.
  };

  LogFiles() = default;

  static std::size_t index(Rank rank, Stream stream);
  void complain(const File& file, int error);

  std::vector<File> files_;
  bool failed_ = false;
  std::function<void(const Error&)> on_error_;
};

}  // namespace horo::launcher
