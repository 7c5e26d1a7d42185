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

/// Digits of the rank in `rank.<r>`, so that the folders of `size` ranks sort.
int rank_digits(int size);

/// One directory with a folder per rank: `rank.<r>/stdout` and `rank.<r>/stderr`. Thread: owner.
class LogFiles {
 public:
  /// Makes `directory` with its parents and all files, empty.
  /// Fails: permission_denied, io and others, naming the path.
  static Result<LogFiles> create(const std::string& directory, int size);

  LogFiles(LogFiles&& other) noexcept = default;
  LogFiles& operator=(LogFiles&& other) = delete;
  ~LogFiles();

  /// Called for the first write that fails; later ones are tried and may fail in silence.
  void on_error(std::function<void(const Error&)> task) { on_error_ = std::move(task); }

  /// Blocks: for the disk.
  void write(Rank rank, Stream stream, std::string_view bytes);

 private:
  struct File {
    std::string path;
    int fd = -1;  // -1: opened for each write, when the process may not hold so many.
  };

  LogFiles() = default;

  static std::size_t index(Rank rank, Stream stream);
  void complain(const File& file, int error);

  std::vector<File> files_;
  bool failed_ = false;
  std::function<void(const Error&)> on_error_;
};

}  // namespace horo::launcher
