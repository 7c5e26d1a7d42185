// SPDX-License-Identifier: Apache-2.0
// An Adasum between hosts, as a sequence of simpler buckets. Every rank gets its slice of all
// inputs (alltoall), computes the products of that slice and shares them (allgather, once per level
// of the tree), adds up its slice, and shares the result (allgather). Each byte crosses the network
// as often as in an allreduce. The bits are those of one host: the same slices, added in the same
// order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/backends/shm/shm_adasum.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Owns how far one such Adasum is. Thread: the holder of the progress token.
class SpanningAdasum {
 public:
  /// The bucket's buffers stay valid until advance() returns true.
  SpanningAdasum(Bucket bucket, int size, int position);

  /// Starts the buckets whose predecessors are done. Nothing else is started on `backend`
  /// meanwhile. True when the Adasum is done. Fails: out_of_memory; as Backend::start.
  Result<bool> advance(Backend& backend);

 private:
  /// The bucket that is in flight, or the last one.
  enum class Phase : std::uint8_t { start, slices, products, results };

  Status start_next(Backend& backend);
  Status send_slices(Backend& backend);
  Status share_products(Backend& backend);
  void take_products();
  Status share_results(Backend& backend);
  Status start(Backend& backend, Bucket bucket);

  std::uint64_t slice_of(std::size_t part, int rank) const;
  /// One rank's slice of a tensor. The place after the last rank's is that of the result.
  std::byte* slice(std::size_t part, int rank);

  const Bucket bucket_;
  const int size_;
  const int position_;
  AdasumRun run_;
  std::uint64_t step_ = 0;  ///< The run's next step.
  std::uint64_t ticket_ = 0;
  Phase phase_ = Phase::start;
  std::vector<std::uint64_t> offsets_;  ///< Where each tensor's slices begin, in bytes.
  std::vector<std::byte> slices_;
  std::vector<AdasumDots> products_;
  std::vector<AdasumDots> all_products_;
};

}  // namespace horo::runtime
