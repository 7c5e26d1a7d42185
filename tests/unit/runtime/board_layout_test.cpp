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
