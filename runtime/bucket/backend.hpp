// SPDX-License-Identifier: Apache-2.0
// The interface of backends, which move the data of one bucket at a time. A backend knows no names
// and no knobs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/bucket/copy_meter.hpp"
#include "runtime/device/stream.hpp"
#include "runtime/host/board_layout.hpp"
#include "runtime/tensor/signature.hpp"
#include "runtime/tensor/tuning.hpp"

namespace horo::runtime {

struct DeviceTimes;

/// The end of a bucket in device memory. The engine owns it until the bucket has completed and
/// the backend writes it. Thread: the holder of the progress token.
struct DeviceOutcome {
  /// The backend records it behind its last work for the bucket.
  EventHandle finished = nullptr;
  /// `finished` is recorded: a stream that waits for it comes after the bucket.
  bool launched = false;
  /// Set by an abort: `finished` is recorded behind the work that the device still has for the
  /// bucket, and that work will end.
  bool abandoned = false;
  /// The results are not valid, on this rank at least; the set goes on.
  Status error;
  /// The backend adds, before the bucket completes, when the device worked for it. Null: no
  /// timeline asks for that.
  DeviceTimes* times = nullptr;
};

/// This rank's part of one tensor.
struct Part {
  TensorId id;
  const void* in = nullptr;
  void* out = nullptr;
  std::uint64_t elements = 0;            ///< In the input; allreduce, broadcast: in the tensor.
  std::uint64_t row_elements = 0;        ///< In one row, where `Bucket::rows` counts rows.
  MemoryKind memory = MemoryKind::host;  ///< It holds `in` and `out`.
  int device = -1;                       ///< Where `memory` is the device's: which one holds them.
  /// Device memory at `out` may be in use before these events.
  std::span<const std::shared_ptr<void>> before{};
  EventHandle ready = nullptr;  ///< Device event after which `in` is valid; null: it is valid.
  /// The last rounding for the way between hosts has left this of each element of `in`; a backend
  /// that rounds adds it and replaces it. Null: it is dropped.
  float* remainder = nullptr;
  /// The same of each element of the result, on the rank that adds it up for all. Null: dropped.
  float* result_remainder = nullptr;
};

/// Rows of an alltoall between this rank and one rank of the set, which may be itself.
struct PeerRows {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t before = 0;  ///< Rows that it sends to the ranks before this one. Used only where
                             ///< the ranks share memory.
};

/// Tensors that run as one operation: same kind, dtype, op, scaling, root and path.
struct Bucket {
  Signature like;  ///< The first tensor's; its shape does not matter.
  DataPath path = DataPath::staged;
  std::vector<Part> parts;
  /// Row counts, part by part. allgather: rows that each rank contributes. reducescatter: rows that
  /// each rank gets. Else empty.
  std::vector<std::uint64_t> rows;
  /// alltoall: part by part, rank by rank. Else empty. No rank knows what others exchange, because
  /// that grows with the square of the ranks.
  std::vector<PeerRows> peers;
  /// alltoall: elements, of all parts, that one rank sends to one rank at most: the same number on
  /// all ranks, which cut the bucket alike.
  std::uint64_t longest = 0;
  /// Power of two by which elements are multiplied when they are rounded to `like.wire`, so that
  /// they fit; the scaling of the result contains its inverse.
  double wire_scale = 1;
  /// Between hosts, one message more costs as much time as this many bytes: the same number on all
  /// ranks, which choose one algorithm.
  std::uint64_t small_message = kUsualSmallMessage;
  /// Device of this rank's first part in device memory, and of `outcome->finished`. Parts are on
  /// other devices only where all buckets are staged. -1: in host memory, also where `like.memory`
  /// is the device's, on a rank that has joined and has no such tensor.
  int device = -1;
  /// Operations that wait for other ranks on the device itself start in the order of their places,
  /// whatever their sets. 0: it has none, because ranks have joined, or it is in host memory.
  std::uint64_t place = 0;
  bool partial = false;              ///< Some ranks have joined and take part with neutral values.
  DeviceOutcome* outcome = nullptr;  ///< Where `like.memory` is the device's; else null.
};

struct BackendCaps {
  std::string_view name;
  bool in_place = false;       ///< Reduces shared memory without a copy.
  bool overlaps = false;       ///< Several buckets in flight move at the same time.
  bool device_failed = false;  ///< health() tells of this rank's own device.
  bool polls = false;          ///< Has no completion events: poll it while buckets are in flight.
};

/// Buckets complete in the order in which they were started, which is the same on all ranks.
/// Thread: the holder of the progress token.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendCaps caps() const = 0;
  /// Starts a bucket. Its buffers stay valid until the bucket counts as completed. Blocks: no.
  /// Fails: protocol (a peer's buffer lies outside its arena), unsupported.
  virtual Status start(Bucket bucket) = 0;
  /// Moves the data that can move without waiting, a bounded piece. True when anything moved, or a
  /// bucket has completed since the last call, be it inside start(): a caller that goes to sleep
  /// after `false` overlooks nothing.
  virtual bool progress() = 0;
  /// Buckets completed since the beginning.
  virtual std::uint64_t completed() const = 0;
  virtual std::uint64_t started() const = 0;
  /// Time spent on copies between the tensors and other memory, such as staging rings.
  virtual CopyTimes copied() const = 0;
  /// Why no bucket will complete any more; ok while all is well. Buckets in flight stay in flight
  /// until abort(). Fails: peer_lost, io, out_of_memory, protocol.
  virtual Status health() const = 0;
  /// Drops all buckets. Returns, after a bounded time, when no thread of this process touches any
  /// buffer. A device that is busy may still do so, before DeviceOutcome::finished.
  virtual void abort() = 0;
};

}  // namespace horo::runtime
