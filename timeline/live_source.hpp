// SPDX-License-Identifier: Apache-2.0
// One rank of a running job: its memory, its process, and what it is about.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.hpp"
#include "timeline/live_rank.hpp"
#include "timeline/rank_source.hpp"

namespace horo::timeline {

/// Thread: owner.
class LiveSource final : public RankSource {
 public:
  explicit LiveSource(const RegionReader& reader);

  const Identity& identity() const override { return reader_.about().identity; }

  std::int64_t wall_ns(std::uint64_t ticks) const override { return clock_.wall_ns(ticks); }

  const NameSlot* name_of(std::uint16_t set, std::uint32_t id) const override;

  int index() const { return reader_.index(); }

  /// What has been recorded up to `until` and was not given yet, in the order of time.
  std::vector<Record> drain(std::uint64_t until, const Anchor& now);
  /// Forgets a name that was given to another tensor.
  void forget_name(const Record& declared);

  std::uint64_t lost() const { return lost_; }

  LiveRank& rank_state() { return state_; }

  const LiveRank& rank_state() const { return state_; }

  /// Descriptor of the process; -1: it has ended.
  int process() const;
  /// 'R', 'S', 'T' as in /proc; 0: it has ended.
  char process_state() const;

 private:
  RegionReader reader_;
  TickClock clock_;
  UniqueFd process_;
  LiveRank state_;
  std::vector<Record> held_;
  std::uint64_t lost_ = 0;
  bool drained_ = false;
  mutable std::unordered_map<TensorKey, NameSlot, TensorKeyHash> names_;
};

}  // namespace horo::timeline
