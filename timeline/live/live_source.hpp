// SPDX-License-Identifier: Apache-2.0
// One rank of a running job: its memory, its process and its state.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.hpp"
#include "timeline/live/live_rank.hpp"
#include "timeline/record/rank_source.hpp"

namespace horo::timeline {

/// Thread: owner.
class LiveSource final : public RankSource {
 public:
  /// `memory`: the owner's number of the memory that the region is part of.
  explicit LiveSource(const RegionReader& reader, std::size_t memory = 0);

  const RankIdentity& identity() const override { return reader_.about().identity; }

  std::int64_t wall_ns(std::uint64_t ticks) const override { return clock_.wall_ns(ticks); }

  std::int64_t taken_ns() const override { return 0; }

  const NameSlot* name_of(std::uint16_t set, std::uint32_t id) const override;

  int index() const { return reader_.index(); }

  std::size_t memory() const { return memory_; }

  /// Reads again which rank the process is: the next generation of an elastic job may give it
  /// another one. False: another process records here now.
  bool read_identity();

  /// The new records up to the ticks `until`, sorted by time.
  std::vector<Record> drain(std::uint64_t until, const Anchor& now);
  /// Forgets a cached name when its tensor number is declared again.
  void forget_name(const Record& declared);

  std::uint64_t lost() const { return lost_; }

  LiveRank& rank_state() { return state_; }

  const LiveRank& rank_state() const { return state_; }

  /// Descriptor of the process (pidfd); -1: the process has ended.
  int process() const;
  /// 'R', 'S', 'T' as in /proc; 0: the process has ended.
  char process_state() const;

 private:
  RegionReader reader_;
  std::size_t memory_;
  TickClock clock_;
  UniqueFd process_;
  LiveRank state_;
  std::vector<Record> held_;
  std::uint64_t lost_ = 0;
  bool drained_ = false;
  mutable std::unordered_map<TensorKey, NameSlot, TensorKeyHash> names_;
};

}  // namespace horo::timeline
