// SPDX-License-Identifier: Apache-2.0
// A running job at one moment, as a value and as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "timeline/analysis/analysis.hpp"
#include "timeline/live/live_gpu.hpp"
#include "timeline/live/live_membership.hpp"
#include "timeline/live/live_row.hpp"

namespace horo::timeline {

struct LiveView {
  std::string job;
  std::int64_t now_ns = 0;  ///< Since 1970.
  int size = 0;             ///< Number of ranks in the job; some may have no row.
  std::vector<LiveRow> rows;
  std::vector<std::string>
      problems;        ///< Why ranks of other hosts have no row, or GPUs are lacking.
  std::string others;  ///< Tells the user where ranks without a row can be seen.
  std::optional<LiveMembership> members{};  ///< Only an elastic job has them.
  std::vector<LiveGpu> gpus{};              ///< By host and index.
  Figures figures;  ///< Operations since the previous view; in the first view, all in memory.
};

/// Returns the lines above the table: first the members of an elastic job, then the ranks that
/// others wait for now, then the verdicts.
std::vector<std::string> headlines(const LiveView& view);

/// A table of at most `width` columns and `height` lines; 0: no limit. GPUs get at most half of the
/// lines, if there are more lines than fit.
std::string live_table(const LiveView& view, int width, int height);
/// One line for each rank, with the time of day.
std::string live_lines(const LiveView& view);
/// One line with the figures since the previous view, and the headlines.
std::string follow_text(const LiveView& view);
/// The view as one line of JSON.
std::string live_json(const LiveView& view);

}  // namespace horo::timeline
