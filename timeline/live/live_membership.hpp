// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace horo::timeline {

/// Whether an elastic job may use a host.
enum class LiveHostUse : std::uint8_t { used = 0, put_aside = 1, leaving = 2, gone = 3 };

struct LiveHost {
  std::string name;
  int slots = 0;
  int ranks = 0;      ///< In the current generation.
  int processes = 0;  ///< All that live: ranks, spares, and those that start or end.
  LiveHostUse use = LiveHostUse::used;
  std::string why;           ///< Why it is not used; empty: it is.
  std::int64_t for_ns = -1;  ///< Time until it is used again, or until it must have left; -1: none.
};

/// The members of an elastic job at one moment.
struct LiveMembership {
  std::uint64_t generation = 0;  ///< 0: the first one has not been formed.
  int ranks = 0;
  int min_np = 0;
  int max_np = 0;         ///< 0: no limit.
  int spares = 0;         ///< Processes that are ready and wait for a place.
  int wanted_spares = 0;  ///< As --spares asks.
  int starting = 0;       ///< Processes that have not asked for a place yet.
  std::string state;      ///< "running", or what the job waits for.
  std::vector<LiveHost> hosts;
};

}  // namespace horo::timeline
