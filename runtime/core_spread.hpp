// SPDX-License-Identifier: Apache-2.0
// Ranks that share a core although another has fewer of them.
//
// The kernel leaves them there for tenths of a second and longer where every core has something to
// run: ranks that wait for each other yield or sleep, so none of them looks as if it lacked time.
// Only they know that they do. A rank that waits therefore looks where the others of its host are.
#pragma once

#include <optional>
#include <sched.h>
#include <span>

#include "base/clock.hpp"
#include "runtime/coordinator/host_memory.hpp"

namespace horo::runtime {

/// Where a rank on core `mine` should rather be, among `allowed`: a core with at least two ranks
/// less, the nearest by number of those with the fewest. `ranks`: the cores of all ranks, its own
/// included. Pure.
std::optional<int> better_core(int mine, std::span<const int> ranks, const cpu_set_t& allowed);

/// Whether some threads have to share a core: the ranks have more of them, `threads` each, than
/// cores that they may run on. `allowed`: of each rank, an empty set where that is unknown, which
/// may be anywhere. Pure.
bool outnumber_cores(std::span<const cpu_set_t> allowed, int threads = 1);

/// Tells the host's other ranks which cores the calling thread may run on.
void publish_cores(HostMemory& host);

/// The same of what all of them have told.
bool outnumber_cores(const HostMemory& host, int threads = 1);

/// Puts the calling thread onto `core`, and leaves it free to go wherever `allowed` lets it.
bool move_to_core(int core, const cpu_set_t& allowed);

/// Thread: the holder of the progress token.
class CoreSpread {
 public:
  explicit CoreSpread(HostMemory& host) : host_(host) {}

  /// Tells the others where this rank is.
  void note() {
    const auto here = static_cast<std::uint32_t>(sched_getcpu() + 1);
    auto& told = host_.my_rank().core;
    if (told.load(std::memory_order_relaxed) != here) told.store(here, std::memory_order_relaxed);
  }

  /// Moves the calling thread if it is one of too many on its core; now and then, for it looks at
  /// all ranks.
  void look(TimePoint now);

  /// At the last look another rank was on the same core: who waits lets it in. Strangers are not
  /// let in, they keep the core for milliseconds.
  bool shares_core() const { return shares_core_; }

 private:
  HostMemory& host_;
  bool shares_core_ = false;
  TimePoint next_{};
};

}  // namespace horo::runtime
