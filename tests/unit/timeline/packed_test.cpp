// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/packed.hpp"

#include <array>

#include <catch2/catch.hpp>

using namespace horo::timeline;

TEST_CASE("submissions after a lost base record are skipped until the next base record") {
  SubmitReader reader;
  std::vector<Record> got;
  const std::array words{SubmitWord::of(1, 2, 32), SubmitWord::of(1, 3, 48),
                         SubmitWord::kBase | 1000, SubmitWord::of(4, 5, 47)};
  CHECK(reader.read(words, got) == 2);
  REQUIRE(got.size() == 1);
  CHECK(got[0] == Record{.ticks = 1032, .kind = RecordKind::submit, .set = 4, .id = 5});
  reader.lose();
  CHECK(reader.read({words.data(), 1}, got) == 1);
  CHECK(got.size() == 1);
}

TEST_CASE("submissions that exceed a word are recognised") {
  CHECK(SubmitWord::fits(SubmitWord::kMostId - 1, SubmitWord::kMostTicks - 1));
  CHECK_FALSE(SubmitWord::fits(SubmitWord::kMostId, 0));
  CHECK_FALSE(SubmitWord::fits(0, SubmitWord::kMostTicks));
  CHECK_FALSE(SubmitWord::fits(0, ~std::uint64_t{0}));  // A clock that went back.
  const auto most = SubmitWord::of(0xffff, SubmitWord::kMostId - 1, SubmitWord::kMostTicks - 1);
  CHECK((most & SubmitWord::kBase) == 0);
}

TEST_CASE("a member row of arbitrary bytes unpacks to a bounded number of members") {
  std::vector<Record> got;
  unpack({.kind = kMemberRow, .detail = 255, .id = 0xfffffffe, .x = ~std::uint64_t{0}}, got);
  CHECK(got.size() == kMostInRow / kMembersPerRecord);
  got.clear();
  unpack({.kind = kMemberRow}, got);
  CHECK(got.empty());
  unpack({.kind = static_cast<RecordKind>(200)}, got);
  CHECK(got.size() == 1);
}
