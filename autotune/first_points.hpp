// SPDX-License-Identifier: Apache-2.0
// The settings that a search measures before it has a model. Pure.
#pragma once

#include <vector>

#include "autotune/search_space.hpp"

namespace horo::autotune {

/// The default, the hints, the default with each other category, settings spread evenly over the
/// space, and the default again, which shows the noise. Only the default occurs twice.
std::vector<Setting> first_points(const SearchSpace& space, const std::vector<Setting>& hints);

}  // namespace horo::autotune
