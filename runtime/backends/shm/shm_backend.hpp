// SPDX-License-Identifier: Apache-2.0
// Collectives through shared memory between the ranks of one host.
//
// Staged: the bucket's tensors, laid end to end, are divided into chunks. Step t covers one chunk
// per rank; rank r owns the r-th. In each step a rank copies the chunks of the other owners into
// its ring, reduces its own chunk from all rings into its result slot and its own output, and
// copies the other owners' results out. Three counters per rank count the steps of all buckets and
// only grow. They say how far each rank is, so there is no barrier, and bucket follows bucket
// without a gap. The rings are small enough to stay in cache.
//
// A reducescatter or alltoall needs the first half: the receiver reduces the data in the senders'
// rings into its output, or copies it there. An allgather or broadcast needs the second half.
//
// Direct: all inputs (and an allreduce's outputs) lie in arenas that all ranks map. Each rank reads
// what it needs from them, and one counter says that it is done. In an allreduce any rank can
// reduce any chunk. Each begins with its own contiguous share (two cores that alternate in short
// runs disturb each other's prefetching: 1.4 times the time). A rank that is done with its share
// helps the others, so that no rank waits for one that came late or has a slow core.
//
// Chain, for sums on a host with many more ranks than cores: the bucket is cut into pieces. Rank 0
// copies its input of a piece to a place that all share, each rank in turn adds its own, and all
// copy the result out. A rank needs two turns on a core instead of three, reads its input once and
// writes to no ring, and all ranks share 4 MiB, which stay in the caches.
//
// In all cases each element is combined in rank order, whichever rank reduces it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "runtime/backends/shm/shm_bucket.hpp"
#include "runtime/backends/shm/shm_mover.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/host/rings.hpp"

namespace horo::runtime {

/// Owns how far this rank is in the buckets in flight. Thread: the holder of the progress token.
class ShmBackend final : public Backend {
 public:
  /// `region` outlives this.
  explicit ShmBackend(const SetRegion& region);

  BackendCaps caps() const override { return {.name = "shm", .in_place = true, .overlaps = true}; }

  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return completed_; }

  std::uint64_t started() const override { return started_; }

  CopyTimes copied() const override { return mover_.copied(); }

  /// Never fails by itself: a lost rank is on the board.
  Status health() const override { return {}; }

  void abort() override;

  /// System calls made to wake peers.
  std::uint64_t wakes() const { return wakes_; }

 private:
  /// All others' counters are at `least`. If not, this rank waits for that.
  bool peers_reached(Count count, std::uint64_t least);
  /// Writes which counters this rank waits for, in case it sleeps.
  void publish_awaited();
  /// Sets this rank's counter and wakes the ranks that waited for nothing else.
  void announce(Count count, std::uint64_t value);

  bool step_in();
  bool step_reduce();
  bool step_out();
  bool step_direct();
  bool step_chain();
  bool step_chain_out();
  /// This rank may add its input to a piece of a chain now. If not, it waits for that.
  bool may_chain(std::uint64_t piece);
  /// The next chunk of a shared bucket; none: all are taken.
  std::optional<ShmChunk> take_chunk(ShmBucket& a);
  void report_reduced(ShmBucket& a);
  bool finished(const ShmBucket& a);
  void retire();
  /// Buckets have completed since this was last asked.
  bool has_completed();

  Rings rings_;
  ShmMover mover_{rings_};
  const int me_;
  const int ranks_;
  std::deque<ShmBucket> active_;
  std::uint64_t next_step_ = 0;
  std::uint64_t next_direct_ = 0;
  std::uint64_t next_piece_ = 0;   ///< Pieces of all chains so far.
  std::uint64_t chain_freed_ = 0;  ///< Pieces whose results all had, when the first rank looked.
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t reported_ = 0;  ///< Those that progress() has reported.
  std::uint64_t wakes_ = 0;
  std::array<std::uint64_t, kCounts> awaited_{};
  std::uint64_t awaited_result_ = 0;
};

}  // namespace horo::runtime
