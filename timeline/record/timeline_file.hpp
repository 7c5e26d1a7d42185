// SPDX-License-Identifier: Apache-2.0
// A rank's records as a file of blocks with checksums (docs/design/timeline.md). All complete
// blocks can be read, wherever the file was cut.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "timeline/record/region.hpp"

namespace horo::timeline {

inline constexpr std::string_view kFileMagic{"HOROTL\r\n", 8};
inline constexpr std::uint32_t kFileVersion = 1;
inline constexpr std::size_t kFileHeaderBytes = 16;
inline constexpr std::size_t kBlockHeaderBytes = 16;
inline constexpr std::size_t kMostBlockBytes = std::size_t{1} << 20U;
inline constexpr std::size_t kRecordsPerBlock = 128;

/// A file's description of its rank.
struct FileAbout {
  RankIdentity identity;
  Anchor first;
  Anchor last;
  std::uint64_t dropped = 0;
};

struct FileContent {
  FileAbout about;
  std::vector<NameSlot> names;
  std::vector<Record> records;  ///< Sorted by time.
};

/// The bytes of the whole file. `content.records` may be in any order.
std::string encode_file(FileContent content);

/// Parses a file that arrives in pieces of any size. Thread: owner.
class FileParser {
 public:
  struct Sink {
    std::function<void(const FileAbout&)> about;
    std::function<void(const NameSlot&)> name;
    std::function<void(const Record&)> record;
  };

  explicit FileParser(Sink sink) : sink_(std::move(sink)) {}

  /// Fails: protocol (not a timeline, or a damaged block; nothing behind it is parsed),
  /// version_mismatch.
  Status feed(std::string_view bytes);

  /// Called after the last piece: says what is missing; empty where the file is complete.
  std::string missing() const;

 private:
  Status take_header();
  Status take_block(std::uint32_t type, std::string_view payload);

  Sink sink_;
  std::string buffer_;
  std::uint64_t offset_ = 0;  ///< Position of `buffer_` in the file.
  std::uint64_t records_ = 0;
  bool greeted_ = false;
  bool ended_ = false;
  bool broken_ = false;
};

}  // namespace horo::timeline
