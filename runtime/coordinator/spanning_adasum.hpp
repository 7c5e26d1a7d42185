// SPDX-License-Identifier: Apache-2.0
// An Adasum between hosts, as a row of simpler buckets: every rank gets its slice of all inputs
// (all-to-all), computes the products of that slice and shares them (all-gather, once per level of
// the tree), adds up its slice, and shares it (all-gather). Each byte crosses as often as in an
// all-reduce, and the bits are those of one host: the same slices, added in the same order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/backends/backend.hpp"
#include "runtime/backends/shm/shm_adasum.hpp"

namespace horo::runtime {

/// Thread: the holder of the progress token.
class SpanningAdasum {
 public:
  /// The bucket's buffers stay valid until advance() says that all is done.
  SpanningAdasum(Bucket bucket, int size, int position);

  /// Starts what comes next, if what came before is done; nothing else is started on `backend`
  /// meanwhile. True when all is done. Fails: out_of_memory; as Backend::start.
  Result<bool> advance(Backend& backend);

 private:
  Status send_slices(Backend& backend);
  Status share_products(Backend& backend);
  void take_products();
  Status share_results(Backend& backend);
  Status start(Backend& backend, Bucket bucket);

  std::uint64_t slice_of(std::size_t part, int rank) const;
  /// One rank's slice of a tensor, or where the result goes that lies after all of them.
  std::byte* slice(std::size_t part, int rank);

  const Bucket bucket_;
  const int size_;
  const int position_;
  AdasumRun run_;
  std::uint64_t step_ = 0;  ///< Of the run.
  std::uint64_t ticket_ = 0;
  bool sent_ = false;
  bool sharing_ = false;                ///< Products are on their way.
  bool ending_ = false;                 ///< Results are.
  std::vector<std::uint64_t> offsets_;  ///< Of each tensor's slices, in bytes.
  std::vector<std::byte> slices_;
  std::vector<AdasumDots> products_;
  std::vector<AdasumDots> all_products_;
};

}  // namespace horo::runtime
