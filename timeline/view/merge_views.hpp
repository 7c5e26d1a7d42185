// SPDX-License-Identifier: Apache-2.0
// Views of one job that were taken on different hosts, merged into one view. Pure.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "timeline/view/live_view.hpp"

namespace horo::timeline {

/// Parses one line of live_json(). The view has no figures. Fails: protocol.
Result<LiveView> parse_live(std::string_view line);

/// Adds the rows of ranks that `to` does not have yet, and sorts all rows by rank. Adds the GPUs of
/// hosts of which `to` has none.
void join_views(LiveView& to, const LiveView& other);

/// Removes the rows of processes that have ended, and of ranks beyond `size`: an elastic job has
/// had members that it has no longer.
void keep_members(LiveView& view, int size);

/// How the ranks of one host were observed.
enum class Observed {
  by_host,  ///< One observer saw all ranks of a host, and knows which of them a rank waits for.
  by_rank,  ///< Each rank had an observer of its own.
};

/// Names the ranks that a waiting rank waits for, where its own observer saw none: all ranks that
/// were observed separately and have no operation in progress.
void find_missing(LiveView& view, Observed observed = Observed::by_host);

}  // namespace horo::timeline
