// SPDX-License-Identifier: Apache-2.0
// The copies between one piece of a staged bucket and the devices that hold its tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/backends/device/staging/staging_lane.hpp"
#include "runtime/backends/device/staging/staging_plan.hpp"
#include "runtime/bucket/bucket_timer.hpp"

namespace horo::runtime {

/// A piece is copied to the host once, and back to its devices once. Thread: the holder of the
/// progress token.
class StagedCopies {
 public:
  /// Both outlive this.
  StagedCopies(const Bucket& bucket, const StagingLane& lane) : bucket_(&bucket), lane_(&lane) {}

  /// Starts the copies to `memory`, each behind the event of its tensor.
  void start_to_host(const StagedPiece& piece, std::byte* memory);

  /// Starts the copies from `memory`, each behind the last uses of its result.
  void start_to_device(const StagedPiece& piece, const std::byte* memory);

  /// Looks which have ended; true: all have.
  bool look();

  bool under_way() const { return !copies_.empty(); }

  /// Copies are under way of which no event tells.
  bool stray() const { return stray_; }

  /// The first error, which names device and host.
  const Status& status() const { return status_; }

 private:
  using Direction = StreamHandle StagingStreams::*;

  /// Those of one device.
  struct Copies {
    const StagingStreams* on;
    StreamHandle stream;
    SharedEvent event{};  ///< Behind them.
    PhaseTimer timer{};   ///< It measures them.
    int unmarked = 0;     ///< Tries to put an event behind them that have failed.
  };

  /// Makes an empty row for each device that holds tensors of the piece.
  void list(const StagedPiece& piece, Direction direction);

  const Part& part_of(const StagedRun& run) const { return bucket_->parts[run.part]; }

  bool is_on(const StagedRun& run, const Copies& copies) const;
  Status await_parts(const StagedPiece& piece, const Copies& copies) const;
  Status await_results(const StagedPiece& piece, const Copies& copies) const;
  Status copy_to_host(const StagedPiece& piece, std::byte* memory, Copies& copies) const;
  Status copy_to_device(const StagedPiece& piece, const std::byte* memory, Copies& copies) const;
  void mark(Copies& copies);
  bool have_ended(Copies& copies);
  void note(const Error& error, const Copies& copies);

  const Bucket* bucket_;
  const StagingLane* lane_;
  std::vector<Copies> copies_;
  bool stray_ = false;
  Status status_;
};

/// The streams of a part's device; null: it is in host memory, or its device has no streams.
const StagingStreams* streams_of(const Part& part, const StagingLane& lane);

}  // namespace horo::runtime
