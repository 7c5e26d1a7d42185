// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/frames/frames.hpp"

#include <array>
#include <random>

#include <catch2/catch.hpp>

#include "runtime/tree/frames/tensor_ids.hpp"

using namespace horo;                 // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;        // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;  // NOLINT(google-build-using-namespace): a test of it

namespace {

Signature scaled() {
  Signature s{.kind = Kind::allreduce, .op = ReduceOp::average, .dtype = DType::bf16};
  s.prescale = 0.5;
  const std::array<std::int64_t, 3> shape{64, 3, 7};
  REQUIRE(set_shape(s, shape));
  return s;
}

Signature rounded() {
  Signature s{.op = ReduceOp::average, .dtype = DType::f32};
  const std::array<std::int64_t, 1> shape{64};
  REQUIRE(set_shape(s, shape));
  s.wire = WireDType::f16;
  s.feedback = 1;
  return s;
}

Signature deep() {
  Signature s{.kind = Kind::broadcast, .dtype = DType::i8, .root = 3};
  const std::vector<std::int64_t> shape(12, 2);
  REQUIRE(set_shape(s, shape));
  return s;
}

Variants all_variants() {
  return {{std::nullopt, RankRanges::of(0, 4)},
          {scaled(), RankRanges::of(4, 2)},
          {rounded(), RankRanges::of(7, 1)},
          {deep(), RankRanges::of(9, 1)}};
}

std::vector<Frame> entries() {
  return {
      LogEntry{.set = SetId{},
               .sequence = 9,
               .kind = LogKind::work,
               .definitions = {{.id = 4, .name = "x", .signature = scaled()},
                               {.id = kNoNumber - 1, .name = "y", .signature = scaled()}},
               .ids = {4, 5},
               .rows = {1, 1, 1, 7},
               .joined = true},
      LogEntry{.set = SetId{}, .sequence = 10, .kind = LogKind::mismatch, .ids = {4}, .text = "no"},
      LogEntry{
          .set = SetId{}, .sequence = 11, .kind = LogKind::join, .ranks = RankRanges::of(5, 1)},
      LogEntry{
          .set = SetId{}, .sequence = 12, .kind = LogKind::left, .ranks = RankRanges::of(5, 2)},
      LogEntry{.set = SetId{},
               .sequence = 13,
               .kind = LogKind::tuning,
               .tuning = {.fusion_threshold = 1U << 20U,
                          .cycle_ns = 300'000,
                          .wake_delay_ns = kLongestTuningTime,
                          .small_message = 1U << 24U}},
      LogEntry{.set = SetId{},
               .sequence = 14,
               .kind = LogKind::carried,
               .ids = {4, 5},
               .inputs = {"1234", std::string(kMostCarriedBytes, 'x')}},
  };
}

std::vector<Frame> frames() {
  const auto variants = all_variants();
  auto all = entries();
  const std::vector<Frame> others{
      LeaderHello{.host = 7, .fingerprint = 0x0123456789abcdef},
      Heartbeat{},
      Declare{
          .set = SetId{3},
          .tensors = {{.name = "weight", .variants = variants},
                      {.name = "a", .again = true, .variants = variants},
                      {.number = 0, .variants = {{std::nullopt, RankRanges::of(0, 1)}}},
                      {.number = kNoNumber - 1, .variants = {{std::nullopt, RankRanges::of(0, 1)}}},
                      {.name = "b", .variants = {{deep(), RankRanges::of(0, 10000)}}}}},
      Ready{.set = SetId{}, .ids = {0, 1, 2, 3, 5, 1000}},
      Joined{.set = SetId{1}, .ranks = RankRanges::of(2, 1)},
      Leave{.set = SetId{1}, .ranks = RankRanges::of(8, 8)},
      Done{.set = SetId{2}, .entries = 1U << 20U},
      ReadyWithInputs{.set = SetId{2}, .tensors = {{.number = 7, .inputs = std::string(4, '\0')}}},
      Loss{.rank = Rank{-1}, .cause = LossCause::aborted, .detail = 9, .host = "node1"},
      Loss{.rank = Rank{3}, .cause = LossCause::stalled, .host = "node1", .text = "it sleeps"},
      Bye{},
      StallQuestion{.set = SetId{1},
                    .number = 3,
                    .least_ms = 45'000,
                    .timeout_ms = 4000,
                    .under_way = true,
                    .ends = true,
                    .more = 129,
                    .names = {"x", "y"}},
      StallAnswer{
          .set = SetId{1},
          .number = 3,
          .lacking = {{.waited_ms = 60'000, .group = "g"},
                      {.missing = RankRanges::of(2, 3), .undeclared = RankRanges::of(4, 1)}},
          .verdicts = {{.rank = Rank{2}, .host = "node1", .text = "stopped"},
                       {.rank = Rank{4}, .host = "", .text = ""}}},
      Arrived{.set = SetId{2},
              .tensors = {{.name = "weight", .rank = Rank{7}, .us_ago = 12},
                          {.number = 3, .rank = Rank{0}, .us_ago = 5'000'000}}},
      ShowArrivals{.wanted = true},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::size_t bytes_of(const Ids& ids) {
  ByteWriter writer;
  put_ids(writer, ids);
  return writer.size();
}

}  // namespace

TEST_CASE("every frame comes back as it was") {
  for (const auto& frame : frames()) {
    const auto bytes = encode(Epoch{300}, frame);
    const auto back = decode(as_bytes(bytes));
    REQUIRE(back);
    CHECK(back->epoch == Epoch{300});
    CHECK(back->frame == frame);
  }
}

TEST_CASE("a shortened or lengthened frame is refused") {
  for (const auto& frame : frames()) {
    const auto bytes = encode(Epoch{1}, frame);
    for (std::size_t n = 0; n < bytes.size(); ++n)
      CHECK_FALSE(decode(as_bytes(std::string_view(bytes).substr(0, n))));
    CHECK_FALSE(decode(as_bytes(bytes + '\0')));
  }
}

TEST_CASE("the bytes of a ready frame are as documented") {
  // Type, epoch, set; ranges, two of them: 2 and two more, then 100 and no more.
  CHECK(encode(Epoch{1}, Ready{.set = SetId{0}, .ids = {2, 3, 4, 100}}) ==
        std::string("\x04\x01\x00\x00\x02\x02\x02\x5e\x00", 9));
  // The same as bits, two bytes of them from 2 on.
  CHECK(encode(Epoch{1}, Ready{.set = SetId{0}, .ids = {2, 3, 4, 10}}) ==
        std::string("\x04\x01\x00\x01\x02\x02\x07\x01", 8));
}

TEST_CASE("a step of 161 tensors is a few bytes") {
  Ids all;
  for (std::uint32_t i = 0; i < 161; ++i) all.push_back(i);
  CHECK(bytes_of(all) <= 5);
  Ids every_other;
  for (std::uint32_t i = 0; i < 161; ++i) every_other.push_back(2 * i);
  CHECK(bytes_of(every_other) <= 46);
}

TEST_CASE("ids survive encoding as ranges and as bits") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 500; ++i) {
    Ids ids;
    const auto share = 1 + random() % 20;
    for (std::uint32_t id = 0; id < 400; ++id) {
      if (random() % share == 0) ids.push_back(id);
    }
    ByteWriter writer;
    put_ids(writer, ids);
    const auto bytes = writer.take();
    ByteReader reader(as_bytes(bytes));
    REQUIRE(take_ids(reader) == ids);
    REQUIRE(reader.finished());
  }
}

TEST_CASE("ids of reused places survive encoding") {
  for (const Ids& ids : {Ids{kNoNumber - 1}, Ids{0, kMostTensors, kMostTensors + 1, kNoNumber - 1},
                         Ids{kNoNumber - 9, kNoNumber - 7, kNoNumber - 1}}) {
    ByteWriter writer;
    put_ids(writer, ids);
    const auto bytes = writer.take();
    ByteReader reader(as_bytes(bytes));
    CHECK(take_ids(reader) == ids);
    CHECK(reader.finished());
  }
}

TEST_CASE("a count that the bytes cannot hold is refused before memory is allocated") {
  ByteWriter writer;
  writer.fixed(std::uint8_t{3}).varint(1).varint(0).varint(std::uint64_t{1} << 60U);
  CHECK_FALSE(decode(as_bytes(writer.take())));
}
