// SPDX-License-Identifier: Apache-2.0
// A rank's records as a file of checked blocks (docs/design/timeline.md): what was written whole
// can be read, wherever the file was cut.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "timeline/region.hpp"

namespace horo::timeline {

inline constexpr std::string_view kFileMagic{"HOROTL\r\n", 8};
inline constexpr std::uint32_t kFileVersion = 1;
inline constexpr std::size_t kFileHeaderBytes = 16;
inline constexpr std::size_t kBlockHeaderBytes = 16;
inline constexpr std::size_t kMostBlockBytes = std::size_t{1} << 20U;
inline constexpr std::size_t kRecordsPerBlock = 128;

/// What a file says of its rank.
struct FileAbout {
  Identity identity;
  Anchor first;
  Anchor last;
  std::uint64_t dropped = 0;
};

struct FileContent {
  FileAbout about;
  std::vector<NameSlot> names;
  std::vector<Record> records;  ///< In the order of time.
};

/// The whole file. `content.records` may be in any order.
std::string encode_file(FileContent content);

/// Takes a file in pieces of any size. Thread: owner.
class FileParser {
 public:
  struct Sink {
    std::function<void(const FileAbout&)> about;
    std::function<void(const NameSlot&)> name;
    std::function<void(const Record&)> record;
  };

  explicit FileParser(Sink sink) : sink_(std::move(sink)) {}

  /// Fails: protocol (no such file, or a damaged block, after which nothing is taken any more),
  /// version_mismatch.
  Status feed(std::string_view bytes);

  /// After the last piece. Empty: the file is whole; else what is missing, for people.
  std::string missing() const;

 private:
  Status take_header();
  Status take_block(std::uint32_t type, std::string_view payload);

  Sink sink_;
  std::string buffer_;
  std::uint64_t offset_ = 0;  ///< Of `buffer_` in the file.
  std::uint64_t records_ = 0;
  bool greeted_ = false;
  bool ended_ = false;
  bool broken_ = false;
};

}  // namespace horo::timeline
