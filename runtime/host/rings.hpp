// SPDX-License-Identifier: Apache-2.0
// The shared memory through which the members of a set on one host move data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "runtime/host/set_bells.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// How this rank uses a peer's buffers.
struct PeerAccess {
  std::uint64_t bytes = 0;
  bool reads = false;   ///< The input.
  bool writes = false;  ///< The output.
};

/// A peer's buffers of one tensor, mapped here.
struct PeerBuffers {
  std::byte* in = nullptr;   ///< Null: not asked for.
  std::byte* out = nullptr;  ///< Null: not asked for.
};

/// Gives a backend the members' rings, arena buffers and step counters; owns no state.
/// Thread: any; a member's counters are written by the holder of its progress token.
class Rings {
 public:
  explicit Rings(const SetRegion& region) : region_(region), bells_(region) {}

  int me() const { return region_.me(); }

  int local_size() const { return region_.local_size(); }

  /// Bytes of a ring's slot.
  std::uint64_t chunk_bytes() const { return region_.layout().staged_chunk; }

  /// Steps that a ring holds.
  std::uint64_t slots() const { return region_.layout().ring_slots; }

  /// Where `member` puts its data for `owner` in a step.
  std::byte* input(int member, std::uint64_t step, int owner) const {
    const auto slot = step % slots() * static_cast<std::uint64_t>(local_size()) +
                      static_cast<std::uint64_t>(owner);
    return ring_of(member) + slot * chunk_bytes();
  }

  /// Where `member` puts its result of a step.
  std::byte* result(int member, std::uint64_t step) const {
    const auto first = slots() * static_cast<std::uint64_t>(local_size());
    return ring_of(member) + (first + step % slots()) * chunk_bytes();
  }

  /// Pieces of chains in flight; 0: there are no chains.
  std::uint64_t chain_slots() const { return region_.layout().chain_slots; }

  /// Where the members add up a piece.
  std::byte* chain_slot(std::uint64_t piece) const {
    return region_.base() + region_.layout().chain + piece % chain_slots() * kChainPiece;
  }

  /// The buffers that `member` has submitted for a tensor. Fails: protocol (one that is asked for
  /// does not lie in the member's arena).
  Result<PeerBuffers> buffers_of(TensorId id, int member, const PeerAccess& access) const;

  // -- Counters ---------------------------------------------------------------------------------

  /// All members but `member` have counted `least` steps.
  bool others_reached(int member, Count count, std::uint64_t least) const {
    for (int m = 0; m < local_size(); ++m) {
      if (m != member && region_.area(m).count(count).load(std::memory_order_seq_cst) < least)
        return false;
    }
    return true;
  }

  /// Notes which value of the others' counters this rank waits for, in case it sleeps.
  void await(Count count, std::uint64_t least) {
    region_.area(me()).awaited[static_cast<std::size_t>(count)].store(least,
                                                                      std::memory_order_relaxed);
  }

  /// Sets this rank's counter and wakes the members that waited for nothing else. Returns how many.
  int announce(Count count, std::uint64_t value);

  // -- Chains: member 0 begins a piece, each adds its input, the last member has the result ------

  /// The member before this one has counted `least` pieces.
  bool predecessor_reached(std::uint64_t least) const { return chained(me() - 1) >= least; }

  /// The results of `least` pieces are there.
  bool result_reached(std::uint64_t least) const { return chained(local_size() - 1) >= least; }

  /// Notes which result this rank waits for, in case it sleeps.
  void await_result(std::uint64_t least) {
    region_.area(me()).awaited_result.store(least, std::memory_order_relaxed);
  }

  /// Sets this rank's count of pieces, which others see when they look.
  void count_chained(std::uint64_t value) {
    region_.area(me()).chained.store(value, std::memory_order_seq_cst);
  }

  /// Wakes the member behind this one if it waits for what is counted; the last rank wakes all that
  /// wait for results. Returns how many.
  int wake_successors() const;

  /// Sets this rank's count of results that it has, and wakes the first member if it waits for no
  /// other. Returns how many.
  int announce_chained_out(std::uint64_t value);

  /// The least count of results that members have; the calling rank's too.
  std::uint64_t least_chained_out() const { return lowest(Count::chained_out).least; }

  /// Wakes members that sleep inside an entry. Returns how many.
  int wake_inside() const { return bells_.wake(interest::kChunks); }

  /// Chunks of `member`'s share that have been taken, for the bucket that uses `place`.
  RoundCount& taken(int member, std::size_t place) const {
    return region_.area(member).taken[place];
  }

  /// Chunks that have been reduced in place, for the bucket that uses `place`.
  RoundCount& reduced_in_place(std::size_t place) const {
    return region_.body().reduced_in_place[place];
  }

 private:
  /// The lowest counter of all members, and the lowest of the others.
  struct Lowest {
    std::uint64_t least = ~std::uint64_t{0};
    std::uint64_t next = ~std::uint64_t{0};
    int member = -1;

    /// The lowest counter of all members but `m`.
    std::uint64_t besides(int m) const { return m == member ? next : least; }
  };

  Lowest lowest(Count count) const;

  std::uint64_t chained(int member) const {
    return region_.area(member).chained.load(std::memory_order_seq_cst);
  }

  std::byte* ring_of(int member) const {
    const auto& layout = region_.layout();
    return region_.base() + layout.rings + static_cast<std::uint64_t>(member) * layout.ring_bytes;
  }

  const SetRegion& region_;
  const SetBells bells_;
};

}  // namespace horo::runtime
