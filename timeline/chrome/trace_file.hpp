// SPDX-License-Identifier: Apache-2.0
// A file with one JSON array that is complete after every write: new elements replace the closing
// bracket and end with a new one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::timeline {

/// Thread: owner. Blocks: for the disk.
class TraceFile {
 public:
  /// Truncates the file and locks it against other writers. `head`: the first elements. Fails:
  /// permission_denied, not_found, io, invalid_argument (not a regular file), unavailable (another
  /// process writes it), naming the path.
  static Result<TraceFile> create(const std::string& path, std::string_view head);

  /// Appends elements that are separated by commas. Fails: resource_exhausted (disk full), io; the
  /// file is then as it was before.
  Status append(std::string_view elements);

  std::uint64_t bytes() const { return end_; }

 private:
  TraceFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  /// Writes up to three parts, one after the other.
  Status write_at(std::uint64_t offset, std::initializer_list<std::string_view> parts);

  UniqueFd fd_;
  std::string path_;
  std::uint64_t end_ = 0;  ///< Position of the closing bracket.
};

}  // namespace horo::timeline
