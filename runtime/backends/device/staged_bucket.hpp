// SPDX-License-Identifier: Apache-2.0
// A bucket in device memory on its way through host memory: each piece is copied to the host, moved
// between the ranks by the backend for host memory, and copied back. The copies of some pieces
// overlap the movement of others.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <vector>

#include "runtime/backends/adasum/spanning_adasum.hpp"
#include "runtime/backends/device/device_options.hpp"
#include "runtime/backends/device/host_bound.hpp"
#include "runtime/backends/device/staging/staged_copies.hpp"
#include "runtime/backends/device/staging/staging_lane.hpp"
#include "runtime/backends/device/staging/staging_plan.hpp"

namespace horo::runtime {

/// An error of the device ends the bucket with an error on all ranks, because they tell each other
/// behind the last piece whether their copies have come about. Every rank takes part in every
/// movement in any case, so the set goes on. Thread: the holder of the progress token.
class StagedBucket final : public HostBound {
 public:
  /// `place` and `lane` outlive this. `error`: the rank has no device to copy from.
  StagedBucket(Bucket bucket, const SetPlace& place, StagingLane& lane, Status error);

  /// Its operations wait for no other rank on the device.
  bool has_starts() const override { return false; }

  void allow_starts() override {}

  Result<bool> fill() override;
  Result<bool> feed(Backend& host) override;
  bool drain(const Backend& host) override;

  bool done() const override { return told_ && done_ == pieces_.size(); }

  bool waits_for_device() const override;

  bool abandon() override;
  void forget() override;

 private:
  using Direction = StreamHandle StagingStreams::*;

  enum class State : std::uint8_t { waiting, coming, here, moving, going, done };

  struct Piece {
    StagedPiece plan;
    State state = State::waiting;
    PinnedSlots::Slot* slot = nullptr;
    StagedCopies copies;
    std::uint64_t ticket = 0;
  };

  Result<bool> begin_copy_in(Piece& piece);
  void begin_copy_out(Piece& piece);
  void copy_in_host(const Piece& piece) const;
  void copy_out_host(const Piece& piece) const;
  bool has_ended(Piece& piece);
  Bucket host_bucket(const Piece& piece) const;
  Status move(Piece& piece, Backend& host);
  Status tell(Backend& host);
  void learn();
  void launch();
  /// Records `finished` behind the bucket's streams of these directions, on all of its devices.
  Status record_finished(std::initializer_list<Direction> directions) const;
  void mark_end();
  void give_back(Piece& piece);
  void note(const Error& error);

  Bucket bucket_;
  const SetPlace& place_;
  StagingLane& lane_;
  std::vector<const StagingStreams*> used_;  ///< Devices on which the bucket has tensors.
  std::deque<Piece> pieces_;
  std::unique_ptr<SpanningAdasum> adasum_;  ///< Between hosts, the piece that moves.
  std::size_t filled_ = 0;                  ///< Pieces whose copies to the host have begun.
  std::size_t fed_ = 0;
  std::size_t drained_ = 0;  ///< Pieces whose copies to the device have begun.
  std::size_t done_ = 0;
  Status error_;
  std::int64_t failed_here_ = 0;  ///< This rank + 1 if its copies have failed; else 0.
  std::int64_t failed_ = 0;       ///< The largest of all ranks.
  std::uint64_t telling_ = 0;     ///< The ticket of the bucket that says so; 0: not started.
  bool told_ = false;
};

}  // namespace horo::runtime
