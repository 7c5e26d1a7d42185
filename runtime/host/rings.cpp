// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/rings.hpp"

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

int Rings::announce(Count count, std::uint64_t value) {
  region_.area(me()).count(count).store(value, std::memory_order_seq_cst);
  if (!bells_.any_sleeps_inside()) return 0;
  int woken = 0;
  for (int m = 0; m < local_size(); ++m) {
    if (m == me() || !bells_.sleeps_inside(m)) continue;
    const auto least =
        region_.area(m).awaited[static_cast<std::size_t>(count)].load(std::memory_order_relaxed);
    // Only once the member can go on: the last rank that it waits for sees all others' counters.
    if (least > value || !others_reached(m, count, least)) continue;
    region_.host().waker().ring(region_.local_rank(m));
    ++woken;
  }
  return woken;
}

}  // namespace horo::runtime
