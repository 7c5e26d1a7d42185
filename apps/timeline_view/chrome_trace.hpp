// SPDX-License-Identifier: Apache-2.0
// From the events of a Chrome trace to operations: Horovod's rows per tensor, horo's own alike, and
// the kernels of PyTorch's profiler.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/timeline_view/model.hpp"
#include "apps/timeline_view/steps.hpp"
#include "timeline/chrome_reader.hpp"

namespace horo::apps {

/// A trace of all ranks has a row per tensor and rank, and an operation in each. Thread: owner.
/// Memory: of the rows that are in use, not of events: unnamed operations may have a row each.
class ChromeTrace {
 public:
  explicit ChromeTrace(Sink& sink) : sink_(&sink) {}

  /// What is found from now on is another's.
  void give_to(Sink& sink) { sink_ = &sink; }

  void take(const timeline::ChromeEvent& event);
  /// None: it only names what others are of.
  static std::optional<std::int64_t> time_of(const timeline::ChromeEvent& event);
  void finish();

 private:
  /// No time that an event has.
  static constexpr auto kNever = std::numeric_limits<std::int64_t>::min();

  struct Activity {
    enum class Kind : std::uint8_t { other, negotiates, copies, moves };

    Kind kind = Kind::other;
    std::string_view mover;  ///< A literal; empty: it does not move.
    std::int64_t from = 0;
  };

  /// A tensor, on one rank where the trace tells them apart.
  struct Row {
    std::uint64_t number = 0;
    int rank = -1;  ///< -1: the trace does not tell ranks apart.
    std::string name;
    std::vector<Activity> open;
    std::int64_t negotiated_from = kNever;
    std::int64_t negotiated_to = kNever;
    std::vector<Arrival> arrivals;
    std::int64_t moved_from = kNever;
    std::int64_t moved_to = kNever;
    std::int64_t packing_ns = 0;
    std::int64_t newest = kNever;
    std::string_view mover;  ///< A literal.
    std::uint64_t bucket = 0;
  };

  /// Tensors that began their operation together, as one fused operation does.
  struct Bucket {
    Operation operation;
    std::uint32_t members = 0;
    std::uint32_t done = 0;
    std::map<int, std::int64_t> arrivals;
  };

  /// A bucket of which members may still begin.
  struct Joining {
    std::uint64_t bucket = 0;
    std::int64_t begun = 0;
    bool at_once = false;  ///< Only what begins at the same moment is of it.
  };

  struct Name {
    std::string text;
    std::uint8_t unused_for = 0;  ///< So many times rows were forgotten.
  };

  /// What some of the ranks have shown of an operation.
  struct Part {
    Operation operation;
    std::vector<int> ranks;
  };

  Bucket& bucket_of(Row& row, std::string_view kind, std::int64_t now);
  Row& row_of(const timeline::ChromeEvent& event);
  void name(Row& row, const timeline::ChromeEvent& event);
  void forget_idle_rows();
  void begin(Row& row, std::string_view name, std::int64_t now);
  void end(Row& row, const timeline::ChromeEvent& event, std::int64_t now);
  void end_operation(Row& row, const timeline::ChromeEvent& event, std::int64_t now);
  void give(Operation operation, int rank);
  void give_parts();
  void tick(Row& row, const timeline::ChromeEvent& event, std::int64_t now);
  void profiled(const timeline::ChromeEvent& event);
  void check_clock(std::int64_t now);

  Sink* sink_;
  static Activity activity_of(std::string_view name, std::int64_t now);

  std::unordered_map<std::string, Row> rows_;
  std::string key_;                              ///< Of the row that was looked for last.
  Row* recent_ = nullptr;                        ///< That row: the next event is often of the same.
  std::size_t most_rows_ = 32'768;               ///< Before idle ones are forgotten.
  std::unordered_map<std::string, Name> names_;  ///< Of rows, by pid.
  std::map<std::uint64_t, Bucket> buckets_;
  std::uint64_t bucket_ = 0;
  std::map<int, Joining> joining_;                 ///< By rank.
  std::set<int> shown_;                            ///< Ranks that have rows of their own.
  std::map<std::string, std::deque<Part>> parts_;  ///< By first tensor, the oldest first.
  StepFinder steps_;
  int ranks_ = 0;           ///< Highest rank seen, and one.
  int profiled_rank_ = -1;  ///< That a profile was last seen of.
  std::int64_t earliest_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t newest_ = kNever;
  std::uint64_t backwards_ = 0;
  std::uint64_t disordered_ = 0;
};

}  // namespace horo::apps
