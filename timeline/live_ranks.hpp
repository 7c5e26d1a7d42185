// SPDX-License-Identifier: Apache-2.0
// What ranks of this host are about, from the memory into which they record and without a word to
// them: `horo top` and agents look through it.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "timeline/live_row.hpp"
#include "timeline/live_source.hpp"

namespace horo::timeline {

/// Thread: owner.
class LiveRanks {
 public:
  /// Regions of one agent, or of a rank without one. `fd` outlives this.
  struct Memory {
    int fd = -1;
    int regions = 0;
  };

  struct View {
    std::int64_t now_ns = 0;  ///< Since 1970.
    int size = 0;             ///< Of the job.
    std::vector<LiveRow> rows;
  };

  /// Sees each record once, of all ranks in the order of time.
  using Witness = std::function<void(const LiveSource&, const Record&)>;

  explicit LiveRanks(std::vector<Memory> memories) : memories_(std::move(memories)) {}

  /// Ranks begin to record one after the other: whether there are more than before.
  bool find_ranks();

  /// Of the ranks that were found: what was recorded since the last call; at the first one rates
  /// are of the last `window`.
  /// Blocks: no.
  View refresh(Duration window, const Witness& witness = {});

  /// In the order of ranks.
  const std::vector<std::unique_ptr<LiveSource>>& sources() const { return sources_; }

 private:
  /// What another rank has been waiting for, and since when.
  using Wanted = LiveRank::Submitted;

  void read(const Anchor& now, std::int64_t window_from, const Witness& witness);
  LiveRow row_of(const LiveSource& source, std::int64_t now, double seconds) const;
  void describe(const LiveSource& source, std::int64_t now, LiveRow& row) const;
  Wanted wanted() const;

  const std::vector<Memory> memories_;
  std::vector<std::vector<bool>> known_;  ///< By memory and region.
  std::vector<std::unique_ptr<LiveSource>> sources_;
  std::int64_t viewed_ns_ = 0;  ///< The view before; 0: none.
};

}  // namespace horo::timeline
