// SPDX-License-Identifier: Apache-2.0
// A running job at one moment, as a value, and as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/timeline_view/analysis.hpp"
#include "timeline/live_row.hpp"

namespace horo::apps {

using timeline::LiveRow;
using timeline::LiveState;

struct LiveView {
  std::string job;
  std::int64_t now_ns = 0;  ///< Since 1970.
  int size = 0;             ///< Of the job; ranks of other hosts may not be among the rows.
  std::vector<LiveRow> rows;
  std::vector<std::string> problems;  ///< Why ranks of other hosts are not among them.
  std::string others;                 ///< What to say of ranks that are not among the rows.
  Figures figures;  ///< Of what ended since the view before, or of all that is in memory.
};

/// What stands over the table: whom others wait for now, then verdicts. Pure.
std::vector<std::string> headlines(const LiveView& view);

/// A table; `width` columns at most, `height` lines; 0: as many as it takes.
std::string live_table(const LiveView& view, int width, int height);
/// A line for each rank, with the time of day.
std::string live_lines(const LiveView& view);
/// A line of figures since the view before, and its headlines.
std::string follow_text(const LiveView& view);
/// One line.
std::string live_json(const LiveView& view);

}  // namespace horo::apps
