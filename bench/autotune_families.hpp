// SPDX-License-Identifier: Apache-2.0
// Families of made surfaces: smooth, stepped, ridges, flat. Their members differ by random numbers,
// so that a search can be chosen on some members and judged on others.
#pragma once

#include "autotune_surfaces.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace horo::bench {

/// Surfaces that are compared as one: the seed of a run chooses its member.
struct SurfaceGroup {
  std::string name;
  std::vector<Surface> members;

  const Surface& of(std::uint64_t seed) const { return members[seed % members.size()]; }
};

/// Each family with `count` members, from number `first` on.
std::vector<SurfaceGroup> made_families(std::uint64_t first, std::uint64_t count);

}  // namespace horo::bench
