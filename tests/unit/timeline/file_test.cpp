// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "timeline/record/timeline_file.hpp"

using namespace horo;
using namespace horo::timeline;

namespace {

FileContent sample(std::size_t records) {
  FileContent content;
  content.about.identity.rank = 3;
  content.about.identity.set_host("node7");
  content.about.identity.set_job("abc");
  content.about.dropped = 5;
  NameSlot slot;
  slot.sequence = 2;
  slot.id = 9;
  slot.name_bytes = 4;
  std::string_view("grad").copy(slot.text.data(), 4);
  content.names.push_back(slot);
  for (std::size_t i = 0; i < records; ++i) {
    content.records.push_back(
        {.ticks = records - i, .kind = RecordKind::submit, .id = static_cast<std::uint32_t>(i)});
  }
  return content;
}

struct Taken {
  int abouts = 0;
  std::vector<std::string> names;
  std::vector<Record> records;
  Status status;
  std::string missing;
};

Taken take(std::string_view file, std::size_t piece) {
  Taken taken;
  FileParser parser({.about =
                         [&](const FileAbout& about) {
                           ++taken.abouts;
                           CHECK(about.identity.host_text() == "node7");
                           CHECK(about.dropped == 5);
                         },
                     .name = [&](const NameSlot& slot) { taken.names.emplace_back(slot.name()); },
                     .record = [&](const Record& record) { taken.records.push_back(record); }});
  for (std::size_t i = 0; i < file.size() && taken.status; i += piece)
    taken.status = parser.feed(file.substr(i, piece));
  taken.missing = parser.missing();
  return taken;
}

}  // namespace

TEST_CASE("a file returns its records sorted by time, in pieces of any size") {
  const auto file = encode_file(sample(300));
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, file.size()}) {
    const auto taken = take(file, piece);
    REQUIRE(taken.status);
    CHECK(taken.missing.empty());
    CHECK(taken.abouts == 1);
    CHECK(taken.names == std::vector<std::string>{"grad"});
    REQUIRE(taken.records.size() == 300);
    CHECK(taken.records.front().ticks == 1);
    CHECK(taken.records.back().ticks == 300);
  }
}

TEST_CASE("a file can be read wherever it is cut") {
  const auto file = encode_file(sample(300));
  std::size_t before = 0;
  for (std::size_t cut = 0; cut < file.size(); ++cut) {
    const auto taken = take(std::string_view(file).substr(0, cut), 512);
    INFO("cut at " << cut);
    REQUIRE(taken.status);
    REQUIRE(taken.missing.starts_with("cut "));
    REQUIRE(taken.records.size() >= before);  // A later cut never shows less.
    before = taken.records.size();
  }
  CHECK(before == 300);  // All but the end block.
}

TEST_CASE("a damaged byte anywhere never shows a record that was not written") {
  const auto whole = encode_file(sample(140));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto file = whole;
    file[at] = static_cast<char>(file[at] ^ 0x20);
    INFO("damaged at " << at);
    const auto taken = take(file, 512);
    // The reserved word of the header is not checked.
    const bool reserved = at >= 12 && at < 16;
    CHECK((reserved || !taken.status || !taken.missing.empty()));
    for (const auto& record : taken.records) REQUIRE(record.ticks == 140 - record.id);
  }
}

TEST_CASE("another version and another format are refused, and the error names them") {
  auto file = encode_file(sample(1));
  file[8] = 9;
  CHECK(take(file, 64).status.error().code == Errc::version_mismatch);
  CHECK(take("{\"traceEvents\": []}", 64).status.error().code == Errc::protocol);
}

TEST_CASE("blocks of an unknown type are skipped") {
  auto content = sample(2);
  const auto file = encode_file(content);
  // Inserts a block of type 77 before the last one, which has 16 + 8 bytes.
  const auto end = file.size() - 24;
  const std::uint32_t type = 77;
  const std::uint32_t bytes = 3;
  std::uint64_t check = 0xcbf29ce484222325ULL;
  const auto mix = [&check](const void* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      check = (check ^ static_cast<const unsigned char*>(from)[i]) * 0x100000001b3ULL;
  };
  mix(&type, 4);
  mix(&bytes, 4);
  mix("abc", 3);
  auto later = file.substr(0, end);
  later.append(reinterpret_cast<const char*>(&type), 4);
  later.append(reinterpret_cast<const char*>(&bytes), 4);
  later.append(reinterpret_cast<const char*>(&check), 8);
  later += "abc" + file.substr(end);
  const auto taken = take(later, 64);
  REQUIRE(taken.status);
  CHECK(taken.missing.empty());
  CHECK(taken.records.size() == 2);
}
