// SPDX-License-Identifier: Apache-2.0
// A running job at one moment, as a value, and as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/timeline_view/analysis.hpp"

namespace horo::apps {

enum class LiveState : std::uint8_t { starts, computes, waits, moves, stopped, ended };

std::string_view name(LiveState state);

struct LiveRow {
  int rank = 0;
  std::string host;
  int pid = 0;
  LiveState state = LiveState::starts;
  std::string tensor;         ///< That it waits for or moves; empty: none.
  std::uint32_t tensors = 0;  ///< As many are in the same case.
  std::int64_t for_ns = 0;    ///< How long it has been in its state.
  std::vector<int> missing;   ///< Ranks that have not submitted `tensor`, as far as is known.
  double operations_per_s = 0;
  double bytes_per_s = 0;
  double waiting = 0;       ///< Share of the time, 0 to 1, inside waits that have ended.
  std::int64_t lag_ns = 0;  ///< For how long another rank has been waiting for this one.
  std::uint64_t stalls = 0;
  std::uint64_t lost = 0;  ///< Records that were overwritten before they could be read.
};

struct LiveView {
  std::string job;
  std::int64_t now_ns = 0;  ///< Since 1970.
  int size = 0;             ///< Of the job; ranks of other hosts may not be among the rows.
  std::vector<LiveRow> rows;
  std::vector<std::string> problems;  ///< Why ranks of other hosts are not among them.
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
