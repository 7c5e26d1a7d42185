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

/// What one rank of a running job is about, at one moment.
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
  std::uint64_t lost = 0;   ///< Records that were overwritten before they could be read.
  std::int64_t age_ns = 0;  ///< Since this was so: its host has not answered since. 0: now.
};

}  // namespace horo::timeline
