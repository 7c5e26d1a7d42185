// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/set_bells.hpp"

namespace horo::runtime {

bool SetBells::runs_soon(int m) const {
  return region_.host().waker().needs_own_thread(region_.local_rank(m)) ||
         region_.area(m).cursor.load(std::memory_order_seq_cst) <
             region_.body().needed.load(std::memory_order_seq_cst);
}

int SetBells::wake(std::uint32_t what, Self self) const {
  auto& waker = region_.host().waker();
  if (what == interest::kChunks && !waker.any_sleeps_inside()) return 0;
  int woken = 0;
  for (int m = 0; m < region_.local_size(); ++m) {
    const auto rank = region_.local_rank(m);
    // Only the rank's own thread is spared: a caller that drives and sleeps must hear of it, and so
    // must callbacks and callers that another thread of the rank has begun to wait with meanwhile.
    const bool spared = self == Self::spared && m == region_.me();
    const auto soon = [&] { return spared ? waker.needs_own_thread(rank) : runs_soon(m); };
    woken += waker.wake(rank, what, soon) ? 1 : 0;
  }
  return woken;
}

int SetBells::wake_laggards(For reason, Self self) const {
  auto& waker = region_.host().waker();
  const auto& body = region_.body();
  const auto& end = reason == For::room ? body.tail : body.needed;
  const auto wanted = end.load(std::memory_order_seq_cst);
  int woken = 0;
  for (int m = 0; m < region_.local_size(); ++m) {
    const auto rank = region_.local_rank(m);
    if ((self == Self::spared && m == region_.me()) || !waker.is_undriven(rank) ||
        region_.area(m).cursor.load(std::memory_order_seq_cst) >= wanted)
      continue;
    woken += waker.call(rank) ? 1 : 0;
  }
  return woken;
}

void SetBells::wake_leader() const {
  constexpr LocalRank kLeader{0};
  auto& host = region_.host();
  if (host.me() != kLeader) host.waker().wake(kLeader, interest::kEntries);
}

bool SetBells::sleeps_inside(int member) const {
  return region_.host().waker().sleeps_inside(region_.local_rank(member));
}

}  // namespace horo::runtime
