// SPDX-License-Identifier: Apache-2.0
#include "runtime/core_spread.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

namespace horo::runtime {

namespace {

constexpr Duration kBetweenLooks = std::chrono::microseconds(200);
constexpr Duration kSettle = std::chrono::milliseconds(2);  // Others move meanwhile.

}  // namespace

std::optional<int> better_core(int mine, std::span<const int> ranks, const cpu_set_t& allowed) {
  std::array<int, CPU_SETSIZE> ranks_on{};
  for (const int core : ranks) ++ranks_on.at(static_cast<std::size_t>(core));
  std::optional<int> best;
  int least = ranks_on.at(static_cast<std::size_t>(mine)) - 1;
  for (int core = 0; core < CPU_SETSIZE && (best || least > 0); ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    const int there = ranks_on[static_cast<std::size_t>(core)];
    if (there < least || (best && there == least && std::abs(core - mine) < std::abs(*best - mine)))
      best = core;
    if (best == core) least = there;
  }
  return best;
}

bool move_to_core(int core, const cpu_set_t& allowed) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return false;
  return sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

void CoreSpread::look(TimePoint now) {
  if (now < next_) return;
  next_ = now + kBetweenLooks;
  note();
  std::vector<int> ranks;
  for (int r = 0; r < host_.local_size(); ++r) {
    const auto core = host_.rank(LocalRank{r}).core.load(std::memory_order_relaxed);
    if (core != 0 && core <= CPU_SETSIZE) ranks.push_back(static_cast<int>(core) - 1);
  }
  const int mine = sched_getcpu();
  shares_core_ = std::ranges::count(ranks, mine) > 1;
  if (mine < 0 || mine >= CPU_SETSIZE || !shares_core_) return;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const auto better = better_core(mine, ranks, allowed);
  if (!better) return;
  next_ = now + kSettle;
  if (move_to_core(*better, allowed)) note();
}

}  // namespace horo::runtime
