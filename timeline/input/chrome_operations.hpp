// SPDX-License-Identifier: Apache-2.0
// Converts the events of a Chrome trace to operations. It understands the row per tensor of Horovod
// and Horo, and the kernels of PyTorch's profiler.
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

#include "timeline/analysis/model.hpp"
#include "timeline/chrome/chrome_reader.hpp"
#include "timeline/input/profiler_events.hpp"
#include "timeline/input/steps.hpp"

namespace horo::timeline {

/// In a trace of all ranks each tensor has a row per rank, and each of them shows the operation.
/// Thread: owner. Memory grows with the rows in use, not with events; rows are forgotten when idle,
/// because each unnamed operation may have a row of its own.
class ChromeOperations {
 public:
  explicit ChromeOperations(OperationSink& sink) : sink_(&sink) {}

  /// Sends all further findings to another sink.
  void set_sink(OperationSink& sink) { sink_ = &sink; }

  void take(const ChromeEvent& event);
  /// The time of an event; none for metadata.
  static std::optional<std::int64_t> time_of(const ChromeEvent& event);
  void finish();

 private:
  /// A time that no event has.
  static constexpr auto kNever = std::numeric_limits<std::int64_t>::min();

  struct Activity {
    enum class Kind : std::uint8_t { other, negotiates, copies, moves };

    Kind kind = Kind::other;
    std::string_view mover;  ///< A literal; empty: the activity moves no data.
    std::int64_t from = 0;
  };

  /// A tensor; on one rank, where the trace distinguishes ranks.
  struct Row {
    std::uint64_t number = 0;
    int rank = -1;  ///< -1: the trace does not distinguish ranks.
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
    std::string path;        ///< As in ObservedOperation.
    std::string path_reason;
    std::uint64_t bucket = 0;
  };

  /// The tensors of one fused operation, recognised by their common beginning.
  struct Bucket {
    ObservedOperation operation;
    std::uint32_t members = 0;
    std::uint32_t done = 0;
    std::map<int, std::int64_t> arrivals;
  };

  /// A bucket that further tensors may still join.
  struct Joining {
    std::uint64_t bucket = 0;
    std::int64_t begun = 0;
    bool at_once = false;  ///< Only tensors that begin at the same moment belong to it.
  };

  struct Name {
    std::string text;
    std::uint8_t unused_for = 0;  ///< How many times idle rows were forgotten since its last use.
  };

  /// An operation of which some ranks have been seen.
  struct Part {
    ObservedOperation operation;
    std::vector<int> ranks;
  };

  Bucket& bucket_of(Row& row, std::string_view kind, std::int64_t now);
  Row& row_of(const ChromeEvent& event);
  void name(Row& row, const ChromeEvent& event);
  void forget_idle_rows();
  void begin(Row& row, std::string_view name, std::int64_t now);
  void end(Row& row, const ChromeEvent& event, std::int64_t now);
  void end_operation(Row& row, const ChromeEvent& event, std::int64_t now);
  void emit(ObservedOperation operation, int rank);
  void emit_parts();
  void worked(const ChromeEvent& event, std::int64_t now);
  void tick(Row& row, const ChromeEvent& event, std::int64_t now);
  void check_clock(std::int64_t now);

  OperationSink* sink_;
  static Activity activity_of(std::string_view name, std::int64_t now);

  std::unordered_map<std::string, Row> rows_;
  std::string key_;                 ///< Key of the row that was looked up last.
  Row* recent_ = nullptr;           ///< That row: the next event often belongs to the same row.
  std::size_t most_rows_ = 32'768;  ///< With more rows, idle ones are forgotten.
  std::unordered_map<std::string, Name> names_;  ///< Names of rows, by pid.
  std::map<std::uint64_t, Bucket> buckets_;
  std::uint64_t bucket_ = 0;
  std::map<int, Joining> joining_;                 ///< By rank.
  std::set<int> shown_;                            ///< Ranks that have rows of their own.
  std::map<std::string, std::deque<Part>> parts_;  ///< By first tensor; the oldest comes first.
  /// How long devices have worked for operations that have not ended, by rank and first tensor.
  std::map<std::pair<int, std::string>, std::int64_t> device_ns_;
  StepFinder steps_;
  ProfilerEvents profiler_;
  int ranks_ = 0;  ///< The highest rank seen, plus one.
  std::int64_t earliest_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t newest_ = kNever;
  std::uint64_t backwards_ = 0;
  std::uint64_t disordered_ = 0;
};

}  // namespace horo::timeline
