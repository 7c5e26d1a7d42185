// SPDX-License-Identifier: Apache-2.0
// How the data of log entries moves through a set's backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/result.hpp"
#include "runtime/board/entry.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/engine/claims.hpp"
#include "timeline/record/record.hpp"

namespace horo::runtime {

/// The tensor at a position of an entry.
inline TensorId id_at(const Entry& entry, std::size_t at) {
  return TensorId{static_cast<std::uint32_t>(entry.ids[at])};
}

/// Done when the backend has completed so many buckets; 0: done.
using Ticket = std::uint64_t;

/// The ticket of an entry that takes several buckets: done when Transfers says so.
inline constexpr Ticket kSeveralBuckets = std::numeric_limits<Ticket>::max();

/// Starts the buckets of entries. Two forms, chosen when the engine is made: each entry is one
/// bucket on this host; between hosts some entries take several. Thread: the holder of the progress
/// token.
class Transfers {
 public:
  virtual ~Transfers() = default;

  /// Another entry may begin. False while an entry takes several buckets: nothing else starts then,
  /// so that all ranks start buckets in one order. Fails: as Backend::start.
  virtual Result<bool> may_begin() = 0;

  /// Starts what must be known before the entry's bucket can be made; true when there is nothing to
  /// wait for. Fails: protocol; as Backend::start.
  virtual Result<bool> prepare(const Entry& entry) = 0;

  /// Appends the rows of an alltoall's tensor between this rank and each member. `at` is the
  /// tensor's position in the entry. Fails: protocol.
  virtual Status add_splits(const Entry& entry, std::size_t at, std::vector<PeerRows>& peers) = 0;

  /// Bucket::longest of the alltoall whose splits were added last. Fails: protocol.
  virtual Result<std::uint64_t> longest_of(const Entry& entry) = 0;

  /// Starts an entry's bucket. Fails: as Backend::start.
  virtual Result<Ticket> start(Bucket bucket) = 0;

  /// Why the bucket takes its path, for the timeline.
  virtual timeline::PathReason path_reason(const Bucket& bucket) const = 0;

  /// The entry that takes several buckets is done.
  virtual bool several_done() const = 0;

  /// Something was started for an entry that has not begun.
  virtual bool preparing() const = 0;

  /// Drops what is under way.
  virtual void abort() = 0;
};

/// Each entry is one bucket, and the board has all splits.
class LocalTransfers final : public Transfers {
 public:
  LocalTransfers(const Claims& claims, const Board& board, Backend& backend)
      : claims_(claims), board_(board), backend_(backend) {}

  Result<bool> may_begin() override { return true; }

  timeline::PathReason path_reason(const Bucket& /*bucket*/) const override {
    return timeline::PathReason::none;
  }

  Result<bool> prepare(const Entry& /*entry*/) override { return true; }

  Status add_splits(const Entry& entry, std::size_t at, std::vector<PeerRows>& peers) override;

  Result<std::uint64_t> longest_of(const Entry& entry) override;

  Result<Ticket> start(Bucket bucket) override {
    HORO_TRY_STATUS(backend_.start(std::move(bucket)));
    return backend_.started();
  }

  bool several_done() const override { return true; }

  bool preparing() const override { return false; }

  void abort() override {}

 private:
  /// The rows that a member sends to each member. Fails: protocol.
  Result<const std::uint64_t*> splits_of(TensorId id, int member) const;

  const Claims& claims_;
  const Board& board_;
  Backend& backend_;
};

}  // namespace horo::runtime
