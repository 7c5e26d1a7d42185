// SPDX-License-Identifier: Apache-2.0
// A file that holds one JSON array and is whole after every write: what comes replaces the closing
// bracket and brings a new one.
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
  /// Truncates, and keeps others from writing there. `head`: the first elements. Fails:
  /// permission_denied, not_found, io, invalid_argument (no plain file), unavailable (somebody
  /// else writes it), naming the path.
  static Result<TraceFile> create(const std::string& path, std::string_view head);

  /// Appends elements that are joined by commas. Fails: resource_exhausted (disk full), io; the
  /// file is then as it was before.
  Status append(std::string_view elements);

  std::uint64_t bytes() const { return end_; }

 private:
  TraceFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  /// Up to three parts, one after the other.
  Status write_at(std::uint64_t offset, std::initializer_list<std::string_view> parts);

  UniqueFd fd_;
  std::string path_;
  std::uint64_t end_ = 0;  ///< Where the closing bracket goes.
};

}  // namespace horo::timeline
