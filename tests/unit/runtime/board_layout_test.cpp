// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/board_layout.hpp"

#include <catch2/catch.hpp>

#include "runtime/host/host_layout.hpp"

namespace horo::runtime {

TEST_CASE("a region holds the board of every set of a host's ranks") {
  const std::uint32_t cores = GENERATE(0U, 2U, 64U);
  for (std::uint32_t ranks = 1; ranks <= static_cast<std::uint32_t>(kMostLocalRanks); ++ranks) {
    const auto region = HostLayout::of({.local_size = ranks, .cores = cores}).region_bytes;
    for (std::uint32_t members = 1; members <= ranks; ++members) {
      CAPTURE(ranks, members, cores);
      const auto needed = BoardLayout::of({.local_size = members, .cores = cores}).total;
      if (needed > region) FAIL("needs " << needed << " bytes of " << region);
    }
  }
}

TEST_CASE("the memory that a set takes from the start is bounded, however many ranks it has") {
  const std::uint32_t cores = GENERATE(0U, 2U, 64U, 256U);
  for (const std::uint32_t ranks : {32U, 64U, 96U, 128U, 192U}) {
    CAPTURE(ranks, cores);
    CHECK(BoardLayout::of({.local_size = ranks, .cores = cores}).fixed_bytes() <= 64'000'000);
  }
  // A chunk has a least size, so that each of an Adasum's steps moves something.
  const auto most = BoardLayout::of({.local_size = kMostLocalRanks, .cores = cores});
  CHECK(most.staged_chunk >= 512);
  CHECK(most.fixed_bytes() <= 80'000'000);
}

TEST_CASE("few ranks have the rings that their knobs ask for") {
  const std::uint32_t ranks = GENERATE(2U, 4U, 8U);
  const BoardParams params{.local_size = ranks};
  const auto layout = BoardLayout::of(params);
  CHECK(layout.ring_slots == params.ring_slots);
  CHECK(layout.staged_chunk == (4U << 20U) / params.ring_slots / ranks);
}

TEST_CASE("what is mapped by itself begins at whole pages of the largest size") {
  for (std::uint32_t ranks = 1; ranks <= static_cast<std::uint32_t>(kMostLocalRanks); ranks += 5) {
    CAPTURE(ranks);
    const auto layout = HostLayout::of({.local_size = ranks});
    CHECK(layout.body % kMapUnit == 0);
    CHECK(layout.regions % kMapUnit == 0);
    CHECK(layout.region_bytes % kMapUnit == 0);
  }
#if defined(__aarch64__)
  CHECK(kMapUnit == 65536);
#endif
}

}  // namespace horo::runtime
