// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/core_spread.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

namespace horo::runtime {

namespace {

constexpr std::size_t kWordBits = 64;
constexpr Duration kBetweenLooks = std::chrono::microseconds(200);
constexpr Duration kSettle = std::chrono::milliseconds(2);  // Other ranks move meanwhile.

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

int threads_per_core(std::span<const cpu_set_t> allowed, int threads) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const auto& set : allowed) {
    if (CPU_COUNT(&set) == 0) return 0;
    CPU_OR(&all, &all, &set);
  }
  const auto on_each = [allowed, threads](const cpu_set_t& cores) {
    const auto inside = std::ranges::count_if(allowed, [&cores](const cpu_set_t& set) {
      cpu_set_t both;
      CPU_AND(&both, &set, &cores);
      return CPU_EQUAL(&both, &set) != 0;
    });
    const int count = CPU_COUNT(&cores);
    return (static_cast<int>(inside) * threads + count - 1) / count;
  };
  // Ranks are bound to cores, to parts of the machine or not at all: two sets of cores are equal,
  // disjoint, or one within the other.
  int most = allowed.empty() ? 0 : on_each(all);
  for (const auto& set : allowed) most = std::max(most, on_each(set));
  return most;
}

void publish_cores(HostMemory& host) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return;
  auto& told = host.my_rank().cores;
  for (std::size_t word = 0; word < told.size(); ++word) {
    std::uint64_t bits = 0;
    for (std::size_t bit = 0; bit < kWordBits; ++bit)
      bits |= std::uint64_t{CPU_ISSET(word * kWordBits + bit, &mine) != 0} << bit;
    told[word].store(bits, std::memory_order_relaxed);
  }
}

int threads_per_core(const HostMemory& host, int threads) {
  std::vector<cpu_set_t> allowed(static_cast<std::size_t>(host.local_size()));
  for (std::size_t r = 0; r < allowed.size(); ++r) {
    CPU_ZERO(&allowed[r]);
    const auto& told = host.rank(LocalRank{static_cast<int>(r)}).cores;
    for (std::size_t core = 0; core < told.size() * kWordBits; ++core) {
      const auto bits = told[core / kWordBits].load(std::memory_order_relaxed);
      if ((bits >> core % kWordBits & 1U) != 0) CPU_SET(core, &allowed[r]);
    }
  }
  return threads_per_core(allowed, threads);
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
  if (mine < 0 || mine >= CPU_SETSIZE || !shares_core_ || !moves_) return;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const auto better = better_core(mine, ranks, allowed);
  if (!better) return;
  next_ = now + kSettle;
  if (move_to_core(*better, allowed)) note();
}

}  // namespace horo::runtime
