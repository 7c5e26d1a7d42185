// SPDX-License-Identifier: Apache-2.0
#include "timeline/record.hpp"

#include <limits>

#include <catch2/catch.hpp>

using namespace horo::timeline;

TEST_CASE("a begin record keeps its fields") {
  const Begin sent{.set = 3,
                   .operation = 5,
                   .placement = 2,
                   .mover = Mover::gloo,
                   .tensors = 161,
                   .entry = 1ULL << 40U,
                   .bytes = 102'228'128};
  const auto got = decode_begin(encode(sent, 77));
  CHECK(got.set == sent.set);
  CHECK(got.operation == sent.operation);
  CHECK(got.placement == sent.placement);
  CHECK(got.mover == sent.mover);
  CHECK(got.tensors == sent.tensors);
  CHECK(got.entry == sent.entry);
  CHECK(got.bytes == sent.bytes);
}

TEST_CASE("a begin record of any bytes decodes to something harmless") {
  Record record{.kind = RecordKind::begin, .detail = 255, .id = 0xffffffff};
  const auto got = decode_begin(record);
  CHECK(name(got.mover) == "OTHER");
  CHECK(operation_name(got.operation) == "UNKNOWN");
}

TEST_CASE("a copies record keeps durations to a few ticks, and at most what it can hold") {
  const auto got = decode_copies(
      encode(Copies{.set = 2, .entry = 9, .in = 1'000'007, .out = ~std::uint64_t{0}}, 77));
  CHECK(got.set == 2);
  CHECK(got.entry == 9);
  CHECK(got.in <= 1'000'007);
  CHECK(got.in > 1'000'007 - 16);
  CHECK(got.out == 0xffffffffULL * 16);
}

TEST_CASE("a members record holds no more than five") {
  Record record{.kind = RecordKind::members, .detail = 200, .id = 1, .x = 2 | 3ULL << 32U, .y = 4};
  std::array<std::uint32_t, kMembersPerRecord> ids{};
  CHECK(decode_members(record, ids) == 5);
  CHECK(ids == std::array<std::uint32_t, 5>{1, 2, 3, 4, 0});
}

TEST_CASE("ticks become wall time on the line between two anchors") {
  const TickClock clock({.ticks = 1000, .monotonic_ns = 50, .wall_ns = 1'000'000},
                        {.ticks = 3000, .monotonic_ns = 1050, .wall_ns = 9'999'999});
  CHECK(clock.wall_ns(1000) == 1'000'000);
  CHECK(clock.wall_ns(2000) == 1'000'500);
  CHECK(clock.wall_ns(0) == 999'500);  // Before the first anchor too.
}

TEST_CASE("anchors without a distance count a tick as a nanosecond") {
  const Anchor same{.ticks = 10, .monotonic_ns = 10, .wall_ns = 500};
  CHECK(TickClock(same, same).wall_ns(15) == 505);
}

TEST_CASE("ticks of later decades differ, and of no anchor do differences overflow") {
  constexpr std::int64_t k2035 = 2'051'222'400'000'000'000;
  const Anchor anchor{.ticks = 0, .monotonic_ns = 0, .wall_ns = k2035};
  const TickClock clock(anchor, {.ticks = 1, .monotonic_ns = 1, .wall_ns = k2035 + 1});
  CHECK(clock.wall_ns(7) == k2035 + 7);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const Anchor last{.ticks = 0, .monotonic_ns = 0, .wall_ns = kMost};
  const Anchor first{.ticks = 0, .monotonic_ns = 0, .wall_ns = -kMost};
  const auto later = TickClock(last, last).wall_ns(static_cast<std::uint64_t>(kMost));
  const auto earlier = TickClock(first, first).wall_ns(static_cast<std::uint64_t>(-kMost));
  CHECK(static_cast<double>(later) - static_cast<double>(earlier) <= static_cast<double>(kMost));
}

TEST_CASE("a name slot with senseless sizes stays within itself") {
  NameSlot slot;
  slot.name_bytes = 255;
  slot.shape_bytes = 255;
  CHECK(slot.name().size() == NameSlot::kMostName);
  CHECK(slot.shape().size() == NameSlot::kTextBytes - NameSlot::kMostName);
}
