// SPDX-License-Identifier: Apache-2.0
// Collectives through shared memory between the ranks of one host.
//
// Staged: the bucket's tensors, laid end to end, are cut into chunks; step t covers one chunk per
// rank, and rank r owns the r-th. For each step a rank copies the chunks of the other owners into
// its ring, reduces its own chunk from everybody's ring into its result slot and its own output,
// and copies the other owners' results out. Three counters per rank, which only grow and count the
// steps of all buckets alike, say how far it is; nobody waits at a barrier, and bucket follows
// bucket without a gap. The rings are small enough to stay in cache.
//
// A reducescatter or alltoall needs the first half of that: what arrives in the ring of its sender
// is reduced into, or copied to, the receiver's output. An allgather or broadcast needs the second.
//
// Direct: all inputs (and an allreduce's outputs) lie in arenas that everybody maps. Each rank
// reads what it needs straight from them; one counter says that it is through. In an allreduce any
// rank can do any chunk: each begins with its own contiguous share (two cores that alternate in
// short runs disturb each other's prefetching: 1.4 times the time), and who is through with that
// helps the others, so that nobody waits for a rank that came late or has a slow core.
//
// Either way each element is added in rank order, whoever owns it.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/backends/backend.hpp"
#include "runtime/backends/shm/kernels/kernels.hpp"
#include "runtime/backends/shm/lanes.hpp"
#include "runtime/backends/shm/ring_writer.hpp"
#include "runtime/backends/shm/shm_adasum.hpp"
#include "runtime/coordinator/board.hpp"

namespace horo::runtime {

class ShmBackend final : public Backend {
 public:
  explicit ShmBackend(Board& board);

  BackendCaps caps() const override { return {.name = "shm", .in_place = true, .overlaps = true}; }

  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return completed_; }

  std::uint64_t started() const override { return started_; }

  CopyTimes copied() const override { return copies_.times(); }

  /// The board says who is lost.
  Status health() const override { return {}; }

  void abort() override;

  /// System calls made to wake peers.
  std::uint64_t wakes() const { return wakes_; }

 private:
  /// A bucket in flight, and how far this rank is in it.
  struct Active {
    Bucket bucket;
    kernels::Reduction what;
    Lanes lanes;
    std::uint64_t steps = 0;  ///< In steps: of this bucket. Else chunks of this rank.
    std::uint64_t first_step =
        0;                    ///< In steps: those before it, since the beginning. Else its number.
    std::uint64_t chunk = 0;  ///< Elements.
    std::uint64_t in = 0, reduced = 0, out = 0;  ///< Steps done by this rank.
    int helped = 0;                              ///< Shared out: ranks whose shares are taken.
    std::vector<const std::byte*> peer_in;       ///< Direct: part by part, rank by rank.
    std::vector<std::byte*> peer_out;            ///< Direct allreduce: the same.
    std::unique_ptr<AdasumRun> adasum;
    std::uint64_t pieces = 0,
                  piece = 0;  ///< Direct Adasum: chunks of a pass, and how many are done.
    kernels::CopyFn to_result = nullptr;  ///< For bytes that nobody reads before the bucket ends.
  };

  /// A stretch of a lane that moves in one step.
  struct Chunk {
    std::size_t lane = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;  ///< 0: nothing.
  };

  /// Bytes reach their receivers without passing a reduction: only the result rings are in use.
  static bool publishes(const Active& a) {
    return a.bucket.like.kind == Kind::allgather || a.bucket.like.kind == Kind::broadcast;
  }

  /// Each rank keeps what it has made of the senders' rings: the result rings are not in use.
  static bool collects(const Active& a) {
    return a.bucket.like.kind == Kind::reducescatter || a.bucket.like.kind == Kind::alltoall;
  }

  static bool direct(const Active& a) { return a.bucket.placement == Placement::direct; }

  /// Moves in steps that the counters of all ranks count; Adasum does so wherever its tensors lie.
  static bool in_steps(const Active& a) { return !direct(a) || a.adasum != nullptr; }

  /// Any rank can do any chunk of it.
  static bool shared_out(const Active& a) {
    return !in_steps(a) && a.bucket.like.kind == Kind::allreduce;
  }

  static std::uint32_t round_of(const Active& a) {
    return static_cast<std::uint32_t>(a.first_step / kSharedPlaces + 1);
  }

  void measure(Active& a) const;
  Status find_peers(Active& a);
  Chunk chunk_of_lane(const Active& a, std::size_t lane, std::uint64_t step) const;
  Chunk result_of(const Active& a, std::uint64_t step, int rank) const;
  Chunk part_for(const Active& a, std::uint64_t step, int owner) const;
  Chunk part_from(const Active& a, std::uint64_t step, int source) const;
  std::byte* ring_in(int rank, std::uint64_t step, int owner) const;
  std::byte* ring_out(int rank, std::uint64_t step) const;
  bool others_reached(int member, Count count, std::uint64_t least) const;
  /// All others' counters are at `least`; else that is what this rank waits for.
  bool peers_reached(Count count, std::uint64_t least);
  /// Says what must come before this rank can move on, in case it sleeps.
  void tell_awaited();
  /// Sets this rank's counter, and wakes those that lacked nothing else.
  void announce(Count count, std::uint64_t value);

  bool step_in();
  bool step_reduce();
  bool step_out();
  bool step_direct();
  void copy_in(Active& a, std::uint64_t step);
  void reduce(Active& a, std::uint64_t step);
  void collect(Active& a, std::uint64_t step);
  void publish(Active& a, std::uint64_t step);
  void copy_out(Active& a, std::uint64_t step);
  /// The next chunk of a bucket that is shared out; none: all are taken.
  std::optional<Chunk> take_chunk(Active& a);
  void report_reduced(Active& a);
  void reduce_direct(Active& a, const Chunk& chunk);
  void copy_direct(Active& a, std::uint64_t chunk);
  /// A bounded piece of a step; true when the step is done.
  bool adasum_step(Active& a, std::uint64_t step);
  void adasum_out(Active& a, std::uint64_t step);
  bool finished(const Active& a);
  bool retire();

  Board& board_;
  const int me_;
  const int ranks_;
  std::deque<Active> active_;
  std::uint64_t next_step_ = 0;
  std::uint64_t next_direct_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
  CopyMeter copies_;
  std::uint64_t wakes_ = 0;
  RingWriter ring_writer_;
  std::array<std::uint64_t, kCounts> awaited_{};
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
};

}  // namespace horo::runtime
