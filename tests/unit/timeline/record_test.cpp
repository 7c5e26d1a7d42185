// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/record.hpp"

#include <limits>

#include <catch2/catch.hpp>

using namespace horo::timeline;

TEST_CASE("a begin record keeps its fields") {
  const Begin sent{.set = 3,
                   .operation = 5,
                   .placement = 2,
                   .mover = Mover::gloo,
                   .reason = PathReason::too_small,
                   .tensors = 161,
                   .entry = 1ULL << 40U,
                   .bytes = 102'228'128};
  const auto got = decode_begin(encode(sent, 77));
  CHECK(got.set == sent.set);
  CHECK(got.operation == sent.operation);
  CHECK(got.placement == sent.placement);
  CHECK(got.mover == sent.mover);
  CHECK(got.reason == sent.reason);
  CHECK(got.tensors == sent.tensors);
  CHECK(got.entry == sent.entry);
  CHECK(got.bytes == sent.bytes);
}

TEST_CASE("a begin record of arbitrary bytes decodes to valid values") {
  Record record{.kind = RecordKind::begin, .detail = 255, .id = 0xffffffff};
  const auto got = decode_begin(record);
  CHECK(name(got.mover) == "OTHER");
  CHECK(path_name(got.reason) == "unknown");
  CHECK(operation_name(got.operation) == "UNKNOWN");
}

TEST_CASE("each path between hosts has a name and a reason, and no path has neither") {
  for (int i = 1; i <= static_cast<int>(PathReason::unknown); ++i) {
    const auto reason = static_cast<PathReason>(i);
    CHECK_FALSE(path_name(reason).empty());
    CHECK_FALSE(text(reason).empty());
  }
  CHECK(path_name(PathReason::none).empty());
  CHECK(text(PathReason::none).empty());
}

TEST_CASE("a copies record keeps durations with an error of a few ticks, up to its limit") {
  const auto got = decode_copies(
      encode(Copies{.set = 2, .entry = 9, .in = 1'000'007, .out = ~std::uint64_t{0}}, 77));
  CHECK(got.set == 2);
  CHECK(got.entry == 9);
  CHECK(got.in <= 1'000'007);
  CHECK(got.in > 1'000'007 - 16);
  CHECK(got.out == 0xffffffffULL * 16);
}

TEST_CASE("a members record holds at most five members") {
  Record record{.kind = RecordKind::members, .detail = 200, .id = 1, .x = 2 | 3ULL << 32U, .y = 4};
  std::array<std::uint32_t, kMembersPerRecord> ids{};
  CHECK(decode_members(record, ids) == 5);
  CHECK(ids == std::array<std::uint32_t, 5>{1, 2, 3, 4, 0});
}

TEST_CASE("ticks are converted to wall time along the line between two anchors") {
  const TickClock clock({.ticks = 1000, .monotonic_ns = 50, .wall_ns = 1'000'000},
                        {.ticks = 3000, .monotonic_ns = 1050, .wall_ns = 9'999'999});
  CHECK(clock.wall_ns(1000) == 1'000'000);
  CHECK(clock.wall_ns(2000) == 1'000'500);
  CHECK(clock.wall_ns(0) == 999'500);  // Before the first anchor too.
}

TEST_CASE("with two equal anchors a tick counts as a nanosecond") {
  const Anchor same{.ticks = 10, .monotonic_ns = 10, .wall_ns = 500};
  CHECK(TickClock(same, same).wall_ns(15) == 505);
}

TEST_CASE("ticks decades later still differ, and differences never overflow") {
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

TEST_CASE("a name slot with damaged sizes does not read beyond itself") {
  NameSlot slot;
  slot.name_bytes = 255;
  slot.shape_bytes = 255;
  CHECK(slot.name().size() == NameSlot::kMostName);
  CHECK(slot.shape().size() == NameSlot::kTextBytes - NameSlot::kMostName);
}
