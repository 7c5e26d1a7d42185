// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/rings.hpp"

#include <algorithm>
#include <optional>

namespace horo::runtime {

Result<PeerBuffers> Rings::buffers_of(TensorId id, int member, const PeerAccess& access) const {
  const auto& theirs = region_.rank_tensor(id, member);
  const auto memory = [&](const std::atomic<std::uint64_t>& offset) {
    return region_.host().peer_memory(region_.local_rank(member),
                                      offset.load(std::memory_order_relaxed), access.bytes);
  };
  PeerBuffers found;
  if (access.reads) found.in = memory(theirs.in_offset);
  if (access.writes) found.out = memory(theirs.out_offset);
  if ((access.reads && found.in == nullptr) || (access.writes && found.out == nullptr)) {
    return fail(Errc::protocol,
                "rank {} gave a buffer of tensor '{}' that does not lie in its arena",
                region_.global_rank(member), region_.tensor_name(id));
  }
  return found;
}

Rings::Lowest Rings::lowest(Count count) const {
  Lowest found;
  for (int m = 0; m < local_size(); ++m) {
    const auto value = region_.area(m).count(count).load(std::memory_order_seq_cst);
    if (value < found.least) {
      found.next = found.least;
      found.least = value;
      found.member = m;
    } else {
      found.next = std::min(found.next, value);
    }
  }
  return found;
}

int Rings::announce(Count count, std::uint64_t value) {
  region_.area(me()).count(count).store(value, std::memory_order_seq_cst);
  if (!bells_.any_sleeps_inside()) return 0;
  // One look at all counters serves all sleepers. It comes behind this rank's own store. So of the
  // ranks that a sleeper waits for, the last one to store finds the others' steps done.
  std::optional<Lowest> counters;
  int woken = 0;
  for (int m = 0; m < local_size(); ++m) {
    if (m == me() || !bells_.sleeps_inside(m)) continue;
    const auto least =
        region_.area(m).awaited[static_cast<std::size_t>(count)].load(std::memory_order_relaxed);
    if (least > value) continue;
    if (!counters) counters = lowest(count);
    if (counters->besides(m) < least) continue;
    woken += region_.host().waker().call(region_.local_rank(m)) ? 1 : 0;
  }
  return woken;
}

int Rings::wake_successors() const {
  if (!bells_.any_sleeps_inside()) return 0;
  const auto value = chained(me());
  auto& waker = region_.host().waker();
  if (me() + 1 < local_size()) {
    const auto& least = region_.area(me() + 1).awaited[static_cast<std::size_t>(Count::chained)];
    const bool waits =
        bells_.sleeps_inside(me() + 1) && least.load(std::memory_order_relaxed) <= value;
    return waits && waker.call(region_.local_rank(me() + 1)) ? 1 : 0;
  }
  int woken = 0;
  for (int m = 0; m < me(); ++m) {
    if (!bells_.sleeps_inside(m) ||
        region_.area(m).awaited_result.load(std::memory_order_relaxed) > value)
      continue;
    woken += waker.call(region_.local_rank(m)) ? 1 : 0;
  }
  return woken;
}

int Rings::announce_chained_out(std::uint64_t value) {
  auto& mine = region_.area(me()).chained_out;
  mine.store(value, std::memory_order_seq_cst);
  if (!bells_.any_sleeps_inside() || !bells_.sleeps_inside(0)) return 0;
  const auto least = region_.area(0).awaited[static_cast<std::size_t>(Count::chained_out)].load(
      std::memory_order_relaxed);
  if (least > value || lowest(Count::chained_out).besides(0) < least) return 0;
  return region_.host().waker().call(region_.local_rank(0)) ? 1 : 0;
}

}  // namespace horo::runtime
