// SPDX-License-Identifier: Apache-2.0
// The work of a step: copies and reductions between tensors, rings and arenas.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/backends/shm/shm_bucket.hpp"
#include "runtime/bucket/copy_meter.hpp"
#include "runtime/bucket/ring_writer.hpp"
#include "runtime/host/rings.hpp"

namespace horo::runtime {

/// Moves bytes. It never waits: its caller has seen that the data and the room are there. Steps are
/// those of the bucket, counted from 0. Thread: the holder of the progress token.
class ShmMover {
 public:
  /// `rings` outlives this.
  explicit ShmMover(const Rings& rings);

  // -- Staged: shm_staged.cpp -------------------------------------------------------------------

  /// From the inputs to this rank's ring, for the ranks that own the chunks.
  void copy_in(ShmBucket& a, std::uint64_t step);
  /// This rank's chunk, from all rings to its result ring and its output.
  void reduce(ShmBucket& a, std::uint64_t step);
  /// From the senders' rings to the output.
  void collect(ShmBucket& a, std::uint64_t step);
  /// From the input to this rank's result ring and its output.
  void publish(ShmBucket& a, std::uint64_t step);
  /// From the result rings of the others to the output.
  void copy_out(ShmBucket& a, std::uint64_t step);

  // -- Chain: shm_chain.cpp. Pieces are counted from the bucket's first
  // ----------------------------

  /// Adds this rank's input to what the ranks before it have made of the piece.
  void chain_in(ShmBucket& a, std::uint64_t piece);
  /// From the piece's place to the output.
  void chain_out(ShmBucket& a, std::uint64_t piece);

  // -- Direct: shm_direct.cpp -------------------------------------------------------------------

  void reduce_direct(ShmBucket& a, const ShmChunk& mine);
  void copy_direct(ShmBucket& a, std::uint64_t chunk);

  // -- Adasum: shm_adasum.cpp -------------------------------------------------------------------

  /// Does a bounded piece of a step; true when the step is done.
  bool adasum_step(ShmBucket& a, std::uint64_t step);
  void adasum_out(ShmBucket& a, std::uint64_t step);

  CopyTimes copied() const { return copies_.times(); }

 private:
  const Rings& rings_;
  const int me_;
  const int ranks_;
  CopyMeter copies_;
  RingWriter ring_writer_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
};

}  // namespace horo::runtime
