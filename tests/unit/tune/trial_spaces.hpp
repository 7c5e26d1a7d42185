// SPDX-License-Identifier: Apache-2.0
// A space for tests of trials.
#pragma once

#include "apps/tune/trials/trial_space.hpp"

namespace horo {

/// A variable with numbers, and one with two words. The default is 4 and "ring".
inline apps::TrialSpace algo_space() {
  using apps::ValueTarget;
  return apps::TrialSpace::make(
             {{.dimension = {.name = "THREADS",
                             .range = autotune::IntegerRange{.least = 1, .most = 16},
                             .fallback = std::int64_t{4}},
               .target = ValueTarget::variable},
              {.dimension = {.name = "ALGO",
                             .range = autotune::Categories{{"ring", "tree"}},
                             .fallback = std::string("ring")},
               .target = ValueTarget::variable}})
      .value();
}

}  // namespace horo
