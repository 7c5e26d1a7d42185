// SPDX-License-Identifier: Apache-2.0
// What moves the bytes of one bucket: one narrow interface. A backend knows no names and no knobs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/backends/copy_meter.hpp"
#include "runtime/coordinator/board_layout.hpp"
#include "runtime/signature.hpp"

namespace horo::runtime {

/// This rank's part of one tensor.
struct Part {
  TensorId id;
  const void* in = nullptr;
  void* out = nullptr;
  std::uint64_t elements = 0;      ///< Of the input (allreduce, broadcast: of the tensor).
  std::uint64_t row_elements = 0;  ///< Of one row, where `Bucket::rows` counts rows.
  void* ready = nullptr;  ///< Event of the device after which `in` holds its values; null: it does.
};

/// Tensors that run as one operation: same kind, dtype, op, scaling, root and placement.
struct Bucket {
  Signature like;  ///< Of the first tensor; its shape is of no interest.
  Placement placement = Placement::staged;
  std::vector<Part> parts;
  /// Part by part, in rows. allgather: what each rank brings. reducescatter: what each rank gets.
  /// alltoall: what each rank sends to each rank, sender by sender. Else empty.
  std::vector<std::uint64_t> rows;
  int device = -1;  ///< Accelerator whose memory all buffers are in; -1: the host's memory.
};

struct BackendCaps {
  std::string_view name;
  bool in_place = false;  ///< Reduces shared memory without a copy.
  bool overlaps = false;  ///< Several buckets in flight move at the same time.
  bool polls =
      false;  ///< Tells nobody when it can move on: look often while buckets are in flight.
};

/// Buckets complete in the order in which they were started, which is the same on all ranks.
/// Thread: the holder of the progress token.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendCaps caps() const = 0;
  /// Takes a bucket on; its buffers stay valid until it counts as completed. Blocks: no.
  /// Fails: protocol (a peer's buffer is not where it may be), unsupported.
  virtual Status start(Bucket bucket) = 0;
  /// Moves what can be moved without waiting, a bounded piece at a time; true when anything moved.
  virtual bool progress() = 0;
  /// Buckets done since the beginning.
  virtual std::uint64_t completed() const = 0;
  virtual std::uint64_t started() const = 0;
  /// How long its buckets have been copied to and from memory that the tensors do not lie in.
  virtual CopyTimes copied() const = 0;
  /// Why no bucket will complete any more; ok while all is well. What is in flight then stays so
  /// until abort(). Fails: peer_lost, io, out_of_memory, protocol.
  virtual Status health() const = 0;
  /// Forgets all buckets; returns when no thread of this process touches any buffer. Bounded.
  virtual void abort() = 0;
};

}  // namespace horo::runtime
