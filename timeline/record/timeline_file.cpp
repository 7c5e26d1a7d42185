// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/timeline_file.hpp"

#include <algorithm>
#include <cstring>

namespace horo::timeline {

namespace {

enum class BlockType : std::uint32_t { about = 1, names = 2, records = 3, end = 4 };

constexpr std::size_t kNamesPerBlock = 64;

struct BlockHeader {
  std::uint32_t type = 0;
  std::uint32_t bytes = 0;
  std::uint64_t check = 0;
};

static_assert(sizeof(BlockHeader) == kBlockHeaderBytes);
static_assert(std::is_trivially_copyable_v<FileAbout>);

std::uint64_t check_of(std::uint32_t type, std::string_view payload) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto take = [&hash](const void* bytes, std::size_t count) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < count; ++i) hash = (hash ^ at[i]) * kPrime;
  };
  const auto bytes = static_cast<std::uint32_t>(payload.size());
  take(&type, sizeof type);
  take(&bytes, sizeof bytes);
  take(payload.data(), payload.size());
  return hash;
}

void append(std::string& to, BlockType type, const void* bytes, std::size_t count) {
  const std::string_view payload(static_cast<const char*>(bytes), count);
  const BlockHeader header{.type = static_cast<std::uint32_t>(type),
                           .bytes = static_cast<std::uint32_t>(count),
                           .check = check_of(static_cast<std::uint32_t>(type), payload)};
  to.append(reinterpret_cast<const char*>(&header), sizeof header);
  to.append(payload);
}

template <typename Row>
void append_rows(std::string& to, BlockType type, const std::vector<Row>& rows, std::size_t most) {
  for (std::size_t i = 0; i < rows.size(); i += most)
    append(to, type, rows.data() + i, std::min(most, rows.size() - i) * sizeof(Row));
}

template <typename Row, typename Use>
void for_rows(std::string_view payload, const Use& use) {
  for (std::size_t i = 0; i + sizeof(Row) <= payload.size(); i += sizeof(Row)) {
    Row row;
    std::memcpy(static_cast<void*>(&row), payload.data() + i, sizeof row);
    use(row);
  }
}

}  // namespace

std::string encode_file(FileContent content) {
  std::stable_sort(content.records.begin(), content.records.end(),
                   [](const Record& a, const Record& b) { return a.ticks < b.ticks; });
  std::string file(kFileMagic);
  const std::array<std::uint32_t, 2> version{kFileVersion, 0};
  file.append(reinterpret_cast<const char*>(version.data()), sizeof version);
  append(file, BlockType::about, &content.about, sizeof content.about);
  append_rows(file, BlockType::names, content.names, kNamesPerBlock);
  append_rows(file, BlockType::records, content.records, kRecordsPerBlock);
  const std::uint64_t count = content.records.size();
  append(file, BlockType::end, &count, sizeof count);
  return file;
}

Status FileParser::take_header() {
  if (!buffer_.starts_with(kFileMagic)) {
    broken_ = true;
    return fail(Errc::protocol, "not a timeline of horo");
  }
  std::uint32_t version = 0;
  std::memcpy(&version, buffer_.data() + kFileMagic.size(), sizeof version);
  if (version != kFileVersion) {
    broken_ = true;
    return fail(Errc::version_mismatch,
                "a timeline of version {}, this program reads version {}; use the newer horo",
                version, kFileVersion);
  }
  buffer_.erase(0, kFileHeaderBytes);
  offset_ += kFileHeaderBytes;
  greeted_ = true;
  return {};
}

Status FileParser::take_block(std::uint32_t type, std::string_view payload) {
  switch (static_cast<BlockType>(type)) {
    case BlockType::about:
      for_rows<FileAbout>(payload, sink_.about);
      break;
    case BlockType::names:
      for_rows<NameSlot>(payload, sink_.name);
      break;
    case BlockType::records:
      records_ += payload.size() / sizeof(Record);
      for_rows<Record>(payload, sink_.record);
      break;
    case BlockType::end:
      ended_ = true;
      break;
  }
  return {};
}

Status FileParser::feed(std::string_view bytes) {
  if (broken_) return {};
  buffer_.append(bytes);
  if (!greeted_) {
    const auto known = std::min(buffer_.size(), kFileMagic.size());
    if (buffer_.size() < kFileHeaderBytes && kFileMagic.starts_with(buffer_.substr(0, known)))
      return {};
    HORO_TRY_STATUS(take_header());
  }
  std::size_t at = 0;
  Status status;
  while (buffer_.size() - at >= kBlockHeaderBytes) {
    BlockHeader header;
    std::memcpy(&header, buffer_.data() + at, sizeof header);
    const bool fits = header.bytes <= kMostBlockBytes;
    if (fits && buffer_.size() - at - kBlockHeaderBytes < header.bytes) break;
    const auto payload =
        fits ? std::string_view(buffer_).substr(at + kBlockHeaderBytes, header.bytes)
             : std::string_view();
    if (!fits || check_of(header.type, payload) != header.check) {
      broken_ = true;
      status = fail(Errc::protocol, "damaged at byte {}; the {} records before it are used",
                    offset_ + at, records_);
      break;
    }
    HORO_TRY_STATUS(take_block(header.type, payload));
    at += kBlockHeaderBytes + header.bytes;
  }
  buffer_.erase(0, at);
  offset_ += at;
  return status;
}

std::string FileParser::missing() const {
  if (ended_ || broken_) return {};
  if (!greeted_) return "cut within its first bytes";
  return fmt::format("cut at byte {}: its end is missing, the {} records before it are used",
                     offset_ + buffer_.size(), records_);
}

}  // namespace horo::timeline
