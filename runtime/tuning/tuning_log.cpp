// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tuning_log.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "base/output_file.hpp"

namespace horo::runtime::tuning {

namespace {

/// The values that all lines have. The caches of agreement are always on, and an allgather between
/// hosts has one way.
std::string values_of(const CourseRow& row, bool hierarchical) {
  const int by_hosts = hierarchical ? 1 : 0;
  return fmt::format("{},0,{},1,{:.6g},{:.8g},{:.8g},bytes/us,{:.4g},{},{},{:.6g},{}", by_hosts,
                     by_hosts, static_cast<double>(row.tuning.cycle_ns) * 1e-6,
                     static_cast<double>(row.tuning.fusion_threshold) / (1 << 20),
                     row.score.score * 1e-6, row.score.standard_error * 1e-6, row.score.steps,
                     row.tuning.wake_delay_ns / 1000,
                     static_cast<double>(row.tuning.small_message) / 1024, row.state);
}

}  // namespace

std::string header_line() {
  return "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,"
         "cycle_time_ms,tensor_fusion_threshold,score,score_unit,standard_error,steps,"
         "wake_delay_us,small_message_kib,state,gain_percent,gain_error_percent,chance_percent";
}

std::string row_line(const CourseRow& row, bool hierarchical) {
  return values_of(row, hierarchical) + ",,,";
}

std::string last_line(const CourseRow& row, bool hierarchical, const autotune::Outcome& outcome) {
  if (outcome.turns == 0) return row_line(row, hierarchical);
  return fmt::format("{},{:.3g},{:.3g},{:.3g}", values_of(row, hierarchical), 100 * outcome.gain,
                     100 * outcome.gain_error, 100 * outcome.chance);
}

Result<TuningLog> TuningLog::open(const std::string& path, bool hierarchical) {
  TuningLog log;
  HORO_TRY(auto opened, open_output_file("autotuning log", path));
  log.file_.reset(fdopen(opened.value(), "w"));
  if (log.file_ == nullptr) return fail_errno(errno, fmt::format("writing '{}'", path));
  opened.release();
  log.hierarchical_ = hierarchical;
  log.write(header_line());
  return log;
}

void TuningLog::write(const std::string& line) {
  if (file_ == nullptr) return;
  fmt::print(file_.get(), "{}\n", line);
  std::fflush(file_.get());
}

void TuningLog::add(const CourseRow& row) {
  write(row_line(row, hierarchical_));
}

void TuningLog::end(const CourseRow& row, const autotune::Outcome& outcome) {
  write(last_line(row, hierarchical_, outcome));
}

}  // namespace horo::runtime::tuning
