// SPDX-License-Identifier: Apache-2.0
// A bucket in shared memory: how it is cut into steps, and which part of it each rank moves when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "runtime/backends/shm/shm_adasum.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/bucket/lanes.hpp"
#include "runtime/host/rings.hpp"
#include "runtime/kernels/kernels.hpp"

namespace horo::runtime {

/// The part of a lane that moves in one step.
struct ShmChunk {
  std::size_t lane = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;  ///< 0: nothing.
};

/// A bucket in flight, as rank `me` sees it. Thread: owner.
struct ShmBucket {
  Bucket bucket;
  int me = 0;
  int ranks = 0;
  kernels::Reduction what{};
  Lanes lanes{};
  std::uint64_t steps = 0;       ///< If it moves in steps: how many. Else chunks of this rank.
  std::uint64_t first_step = 0;  ///< If it moves in steps: all steps before it. Else its number.
  std::uint64_t chunk = 0;       ///< Elements.
  std::uint64_t in = 0, reduced = 0, out = 0;  ///< Steps done by this rank.
  int helped = 0;                              ///< Shared: ranks whose shares are taken.
  std::vector<const std::byte*> peer_in{};     ///< Direct: part by part, rank by rank.
  std::vector<std::byte*> peer_out{};          ///< Direct allreduce: the same.
  std::unique_ptr<AdasumRun> adasum{};
  std::uint64_t pieces = 0;             ///< Direct Adasum: chunks of a pass.
  std::uint64_t piece = 0;              ///< Chunks of the pass that are done.
  bool chained = false;                 ///< Passes from rank to rank, piece by piece.
  kernels::CopyFn to_result = nullptr;  ///< For bytes that no rank reads before the bucket ends.

  /// Data is not reduced: only the result rings are in use.
  bool publishes() const {
    return bucket.like.kind == Kind::allgather || bucket.like.kind == Kind::broadcast;
  }

  /// Each rank keeps what it makes of the senders' rings: the result rings are not in use.
  bool collects() const {
    return bucket.like.kind == Kind::reducescatter || bucket.like.kind == Kind::alltoall;
  }

  bool direct() const { return bucket.path == DataPath::direct; }

  /// Moves in steps that all ranks' counters count. An Adasum does so wherever its tensors lie.
  bool in_steps() const { return !chained && (!direct() || adasum != nullptr); }

  /// Any rank can reduce any chunk.
  bool is_shared() const { return !chained && !in_steps() && bucket.like.kind == Kind::allreduce; }

  /// Shared: tells it from earlier buckets that used the same place.
  std::uint32_t round() const { return static_cast<std::uint32_t>(first_step / kSharedPlaces + 1); }

  ShmChunk chunk_of_lane(std::size_t lane, std::uint64_t step) const;
  /// The chunk that passes through the result ring of `rank` in a step.
  ShmChunk result_of(std::uint64_t step, int rank) const;
  /// The chunk that this rank puts into its ring for `owner` in a step.
  ShmChunk part_for(std::uint64_t step, int owner) const;
  /// The chunk that this rank finds in the ring of `source` in a step.
  ShmChunk part_from(std::uint64_t step, int source) const;
};

/// Cuts `bucket` into steps; its first step is not set yet.
ShmBucket make_shm_bucket(Bucket bucket, const Rings& rings);

/// Direct: finds the peers' buffers. Fails: protocol (one lies outside its arena).
Status find_peers(ShmBucket& a, const Rings& rings);

}  // namespace horo::runtime
