// SPDX-License-Identifier: Apache-2.0
// Moves a rank away from a core that it shares with other ranks, when another core has fewer.
//
// The kernel leaves ranks on a shared core for tenths of a second and longer when every core has
// something to run: ranks that wait for each other yield or sleep, so none of them seems to lack
// time. So a rank that waits looks which cores the other ranks of its host are on.
#pragma once

#include <optional>
#include <sched.h>
#include <span>

#include "base/clock.hpp"
#include "runtime/host/host_memory.hpp"

namespace horo::runtime {

/// A better core among `allowed` for a rank on core `mine`: one with at least two ranks less; of
/// those with the fewest ranks, the nearest by number. `ranks`: the cores of all ranks, this one
/// included. Pure.
std::optional<int> better_core(int mine, std::span<const int> ranks, const cpu_set_t& allowed);

/// How many threads have to share a core, where they are most, if the ranks have `threads` each;
/// rounded up. `allowed`: the cores of each rank; an empty set where they are unknown: then 0.
/// Pure.
int threads_per_core(std::span<const cpu_set_t> allowed, int threads = 1);

/// Tells the host's other ranks which cores the calling thread may run on.
void publish_cores(HostMemory& host);

/// The same for the cores that all ranks have published.
int threads_per_core(const HostMemory& host, int threads = 1);

/// Moves the calling thread to `core`. Afterwards it may run on all of `allowed` again.
bool move_to_core(int core, const cpu_set_t& allowed);

/// Owns when this rank looks at the others' cores. Thread: the holder of the progress token.
class CoreSpread {
 public:
  explicit CoreSpread(HostMemory& host) : host_(host) {}

  /// Tells the other ranks which core this rank is on.
  void note() {
    const auto here = static_cast<std::uint32_t>(sched_getcpu() + 1);
    auto& told = host_.my_rank().core;
    if (told.load(std::memory_order_relaxed) != here) told.store(here, std::memory_order_relaxed);
  }

  /// From now on threads stay where the kernel puts them. Where many ranks share each core, their
  /// numbers always differ, and moves cost more than they win.
  void stay() { moves_ = false; }

  /// Moves the calling thread if too many ranks are on its core. Does so only now and then, because
  /// it looks at all ranks.
  void look(TimePoint now);

  /// At the last look another rank was on the same core: a thread that waits yields to it. A thread
  /// does not yield to other programs, which would keep the core for milliseconds.
  bool shares_core() const { return shares_core_; }

 private:
  HostMemory& host_;
  bool shares_core_ = false;
  bool moves_ = true;
  TimePoint next_{};
};

}  // namespace horo::runtime
