// SPDX-License-Identifier: Apache-2.0
// What a person names on the command line, as bytes: files, compressed or not, FIFOs, folders.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::apps {

enum class Format { horo, chrome };

/// One file that is read from its beginning to its end. Thread: owner. Blocks: for the disk.
class Input {
 public:
  /// "-": standard input. Fails: not_found, permission_denied, io; invalid_argument (empty, or
  /// nothing that this program knows), naming the path.
  static Result<std::unique_ptr<Input>> open(const std::string& path);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string& path() const { return path_; }

  Format format() const { return format_; }

  /// 0 at the end. Fails: io (also what zlib finds damaged).
  Result<std::size_t> read(char* to, std::size_t room);

 private:
  Input(std::string path, void* file) : path_(std::move(path)), file_(file) {}

  Status look();

  std::string path_;
  void* file_;  ///< zlib's.
  std::string ahead_;
  Format format_ = Format::chrome;
};

/// Folders become the timelines below them, in order. Fails: not_found (a folder without any), io.
Result<std::vector<std::string>> expand(const std::vector<std::string>& paths);

}  // namespace horo::apps
