// SPDX-License-Identifier: Apache-2.0
// The state of this host's ranks, read from the memory that they record into. The ranks are not
// contacted. `horo top` and agents use this.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "timeline/live/live_row.hpp"
#include "timeline/live/live_source.hpp"

namespace horo::timeline {

/// Thread: owner.
class LiveRanks {
 public:
  /// The memory that one agent made for its ranks, or that a rank without agent made. `fd` outlives
  /// the LiveRanks.
  struct Memory {
    int fd = -1;
    int regions = 0;
  };

  struct View {
    std::int64_t now_ns = 0;  ///< Since 1970.
    int size = 0;             ///< Number of ranks in the whole job.
    std::vector<LiveRow> rows;
  };

  /// Called once for each record, with the records of all ranks in order of time.
  using RecordCallback = std::function<void(const LiveSource&, const Record&)>;

  explicit LiveRanks(std::vector<Memory> memories) : memories_(std::move(memories)) {}

  /// Looks for ranks that have begun to record, and for those that are another rank or process now.
  /// Returns whether sources() has other members than before.
  bool find_ranks();

  /// Reads the records since the last call, of the ranks that were found. The rates of the first
  /// call cover the last `window`. Blocks: no.
  View refresh(Duration window, const RecordCallback& on_record = {});

  /// Sorted by rank.
  const std::vector<std::unique_ptr<LiveSource>>& sources() const { return sources_; }

 private:
  /// Tensors that some rank is waiting for, and since when.
  using Wanted = LiveRank::Submitted;

  void read(const Anchor& now, std::int64_t window_from, const RecordCallback& on_record);
  LiveRow row_of(const LiveSource& source, std::int64_t now, double seconds) const;
  void describe(const LiveSource& source, std::int64_t now, LiveRow& row) const;
  Wanted wanted() const;

  const std::vector<Memory> memories_;
  std::vector<std::vector<bool>> known_;  ///< By memory and region.
  std::vector<std::unique_ptr<LiveSource>> sources_;
  std::int64_t viewed_ns_ = 0;  ///< The time of the previous view; 0: none.
};

}  // namespace horo::timeline
