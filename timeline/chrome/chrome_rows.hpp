// SPDX-License-Identifier: Apache-2.0
// The state of the rows that a Chrome trace shows, and the parts of their events that are constant.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "timeline/record/record.hpp"

namespace horo::timeline {

/// When a rank submitted a tensor.
struct ShownSubmission {
  int rank = 0;
  std::int64_t us = 0;
};

/// The state of one rank in one row.
struct ChromeLane {
  std::int64_t last_us = 0;
  bool negotiates = false;   ///< The tensor is submitted and in no entry yet.
  bool runs = false;         ///< The tensor's operation is shown.
  std::vector<int> arrived;  ///< The ranks whose ticks the negotiation has.
  /// Submissions for the next operation, by ranks that have ended the one shown earlier.
  std::vector<ShownSubmission> early;
};

/// The row of one tensor.
struct ChromeRow {
  int row = 0;
  std::string name;
  std::string title;  ///< The name that the viewer shows.
  bool only_negotiates = false;
  bool announced = false;  ///< This file has the row's name.
  // Parts of events, ready to be written.
  std::string negotiates;  ///< The event that begins a negotiation.
  std::string result;      ///< The event that ends an operation, with its arguments.
  std::string row_text;
  std::vector<ChromeLane> lanes;  ///< By the index of the rank.
};

/// The facts of a tensor's declaration that prove another one.
struct DeclaredFacts {
  std::uint64_t name_hash = 0;
  std::uint64_t bytes = 0;
};

/// The event of a change of the tuning, without its time.
inline std::string tuning_event(std::string_view changes) {
  return fmt::format(R"("ph": "i", "name": "TUNING", "s": "g", "args": {{"changes": "{}"}})",
                     changes);
}

/// The event of a generation that the rank has entered, without its time.
inline std::string generation_event(const RecordedGeneration& entered) {
  return fmt::format(
      R"("ph": "i", "name": "GENERATION", "s": "g", "args": {{"generation": {}, "ranks": {}, "survivors": {}}})",
      entered.generation, entered.ranks, entered.survivors);
}

/// A log entry that one rank has begun and not ended.
struct ShownEntry {
  std::uint64_t number = 0;
  std::uint16_t set = 0;
  Mover mover = Mover::none;
  PathReason reason = PathReason::none;
  std::string_view operation;
  std::vector<std::uint32_t> ids;
  std::uint32_t lacking = 0;  ///< Number of members whose records have not come yet.
  bool running = false;
  std::int64_t ran_us = 0;  ///< When it began to run.
  std::int64_t in_us = 0;   ///< Duration of the copies into and out of the fusion buffer.
  std::int64_t out_us = 0;
};

/// A rank whose operations the trace shows.
struct ShownRank {
  int rank = 0;
  std::size_t index = 0;           ///< Ranks are numbered in the order of their first records.
  std::string submits;             ///< The event that shows a submission.
  std::string end_of_event;        ///< Names the thread, where ranks are shown.
  std::deque<ShownEntry> entries;  ///< Entries that have begun and not ended.
  std::set<std::uint16_t> sets;    ///< The sets that it is known to be a member of, but the world.
  TuningChange tuning;
};

/// A phase of an operation on a device.
struct ShownDevicePhase {
  RecordedDevicePhase what;
  std::int64_t from_ns = 0;  ///< The time of the record, since time 0 of the trace.
  int rank = -1;             ///< -1: the trace does not distinguish ranks.
  std::string_view operation{};
  std::string tensor{};  ///< The title of the first tensor; empty: not known.
  std::size_t tensors = 0;
};

/// Fills in the parts of a row's events. Leaves out the sizes of the name table where a later
/// declaration with other sizes wrote them.
void describe(ChromeRow& tensor, const std::optional<NameSlot>& slot, const DeclaredFacts* was);

/// The entry that has these copies gets their durations.
void add_copies(std::deque<ShownEntry>& entries, const Copies& copies, double ns_per_tick);

/// Identifies a row among all sets.
inline std::uint64_t key_of(std::uint16_t set, std::uint32_t id) {
  return std::uint64_t{set} << 32U | id;
}

// -- Events, without their times and rows --------------------------------------------------------

inline std::string begins(std::string_view name) {
  return fmt::format(R"("ph": "B", "name": "{}")", name);
}

inline constexpr std::string_view kEnds = R"("ph": "E")";
inline constexpr std::string_view kBeginsQueue = R"("ph": "B", "name": "QUEUE")";
inline constexpr std::string_view kBeginsCopyIn = R"("ph": "B", "name": "MEMCPY_IN_FUSION_BUFFER")";
inline constexpr std::string_view kBeginsCopyOut =
    R"("ph": "B", "name": "MEMCPY_OUT_FUSION_BUFFER")";

/// Devices' events are in this category, which no event of a tensor has.
inline constexpr std::string_view kDeviceCategory = "device";
inline constexpr std::string_view kNoDeviceTimesEvent = "NO_DEVICE_TIMES";

/// The complete event of a phase. `row_text`: that of its row.
std::string device_event(const ShownDevicePhase& phase, std::string_view row_text);
/// The complete event that says why times are missing.
std::string no_device_times_event(std::string_view reason, const ShownDevicePhase& phase,
                                  std::string_view row_text);

/// The events that name a row.
std::string row_names(int row, std::string_view title);

/// The end of the data movement, with the bucket's path between the hosts.
inline std::string ends_moving(PathReason reason) {
  if (reason == PathReason::none) return std::string(kEnds);
  return fmt::format(R"({}, "args": {{"path": "{}", "reason": "{}"}})", kEnds, path_name(reason),
                     text(reason));
}

}  // namespace horo::timeline
