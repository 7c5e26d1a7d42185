// SPDX-License-Identifier: Apache-2.0
// From the events of a Chrome trace to operations: Horovod's rows per tensor, horo's own alike, and
// the kernels of PyTorch's profiler.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/timeline_view/model.hpp"
#include "apps/timeline_view/steps.hpp"
#include "timeline/chrome_reader.hpp"

namespace horo::apps {

/// Thread: owner. Memory: of rows, not of events.
class ChromeTrace {
 public:
  explicit ChromeTrace(Sink& sink) : sink_(&sink) {}

  /// What is found from now on is another's.
  void give_to(Sink& sink) { sink_ = &sink; }

  void take(const timeline::ChromeEvent& event);
  /// `rank`: of the profiler's process; -1: not said.
  void finish(int rank);

 private:
  struct Activity {
    std::string name;
    std::int64_t from = 0;
  };

  /// A tensor, on one rank where the trace tells them apart.
  struct Row {
    std::uint64_t number = 0;
    std::string name;
    std::vector<Activity> open;
    std::int64_t negotiated_from = 0;
    std::int64_t negotiated_to = 0;
    std::vector<Arrival> arrivals;
    std::int64_t moved_from = 0;
    std::int64_t moved_to = 0;
    std::int64_t packing_ns = 0;
    std::string mover;
    std::uint64_t bucket = 0;
  };

  /// Tensors that began their operation together, as one fused operation does.
  struct Bucket {
    Operation operation;
    std::uint32_t members = 0;
    std::uint32_t done = 0;
    std::map<int, std::int64_t> arrivals;
  };

  Row& row_of(const timeline::ChromeEvent& event);
  void begin(Row& row, const std::string& name, std::int64_t now);
  void end(Row& row, const timeline::ChromeEvent& event, std::int64_t now);
  void end_operation(Row& row, const timeline::ChromeEvent& event, std::int64_t now);
  void tick(Row& row, const timeline::ChromeEvent& event, std::int64_t now);
  void profiled(const timeline::ChromeEvent& event);
  void check_clock(std::int64_t now);

  Sink* sink_;
  std::unordered_map<std::string, Row> rows_;
  std::unordered_map<std::string, std::string> names_;  ///< Of rows, by pid.
  std::map<std::uint64_t, Bucket> buckets_;
  std::uint64_t bucket_ = 0;
  bool joining_ = false;  ///< The last event began an operation too.
  StepFinder steps_;
  int ranks_ = 0;  ///< Highest rank seen, and one.
  int profiled_rank_ = 0;
  bool has_profile_ = false;
  bool started_ = false;
  std::int64_t newest_ = 0;
  std::uint64_t backwards_ = 0;
};

}  // namespace horo::apps
