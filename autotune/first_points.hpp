// SPDX-License-Identifier: Apache-2.0
// The settings that a search measures before it has a model. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autotune/search_space.hpp"

namespace horo::autotune {

/// The default, the hints, the default with each other category, settings spread evenly over the
/// space, and the default again, which shows the noise. Only the default occurs twice.
/// `seed` moves the evenly spread ones; `even` is their number, if it is given.
std::vector<Setting> first_points(const SearchSpace& space, const std::vector<Setting>& hints,
                                  std::uint64_t seed, std::optional<std::size_t> even = {});

}  // namespace horo::autotune
