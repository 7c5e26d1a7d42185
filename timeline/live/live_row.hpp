// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace horo::timeline {

enum class LiveState : std::uint8_t {
  starts = 0,
  computes = 1,
  waits = 2,
  moves = 3,
  stopped = 4,
  ended = 5
};

std::string_view name(LiveState state);

/// The state of one rank of a running job at one moment.
struct LiveRow {
  int rank = 0;
  std::string host;
  int pid = 0;
  LiveState state = LiveState::starts;
  std::string tensor;         ///< The tensor that the rank waits for or moves; empty: none.
  std::uint32_t tensors = 0;  ///< How many tensors it waits for or moves.
  std::int64_t for_ns = 0;    ///< How long the rank has been in this state.
  std::vector<int> missing;   ///< Ranks that are known not to have submitted `tensor`.
  double operations_per_s = 0;
  double bytes_per_s = 0;
  double waiting = 0;       ///< Share of the time spent in waits that have ended, 0 to 1.
  std::int64_t lag_ns = 0;  ///< How long another rank has been waiting for this one.
  std::uint64_t stalls = 0;
  std::uint64_t lost = 0;   ///< Number of records that were overwritten before they were read.
  std::int64_t age_ns = 0;  ///< Age of this row, where its host has stopped answering; else 0.
};

}  // namespace horo::timeline
