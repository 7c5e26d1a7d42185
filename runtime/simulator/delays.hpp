// SPDX-License-Identifier: Apache-2.0
// Random delays at the race points of the runtime (base/race_point.hpp): between a completion and
// the wake-up that reports it, between a look for news and the sleep that follows.
#pragma once

#include <cstdint>

namespace horo::test {

struct DelayPlan {
  std::uint64_t seed = 0;
  std::uint32_t one_in = 8;        ///< One of so many visits of a race point waits.
  std::uint32_t longest_us = 200;  ///< The waits are shorter than this.
};

/// Every thread of the process waits at race points while this lives. One at a time.
class RandomDelays {
 public:
  explicit RandomDelays(const DelayPlan& plan);
  ~RandomDelays();
  RandomDelays(const RandomDelays&) = delete;
  RandomDelays& operator=(const RandomDelays&) = delete;

  /// Waits so far.
  static std::uint64_t count();
};

/// HORO_SIM_DELAYS is the seed; without it each process draws one. The seed is printed once. The
/// value `off` gives no delays: `one_in` is 0.
DelayPlan delays_from_environment();

/// From now on the seed of delays_from_environment() is this, unless the variable is set. It also
/// says how long the delays are.
void set_delay_seed(std::uint64_t seed);

}  // namespace horo::test
