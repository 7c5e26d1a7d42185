// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/elastic_report.hpp"

#include "base/json.hpp"
#include "launcher/job/describe.hpp"

namespace horo::launcher {

namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string headline(const ElasticReportInput& input) {
  if (!input.end.failure.empty())
    return fmt::format("{} after {}", input.end.failure, describe(input.elapsed));
  return fmt::format("stopped by {} after {}", describe_signal(input.signal),
                     describe(input.elapsed));
}

std::string timeline_text(const SavedTimeline& saved) {
  std::string text;
  if (saved.ranks != 0) {
    text += fmt::format("  timeline of {} {}: {} (horo timeline-view {})\n", saved.ranks,
                        saved.ranks == 1 ? "worker" : "workers", saved.directory, saved.directory);
  }
  if (!saved.problem.empty())
    text += fmt::format("  timeline: could not be saved: {}\n", saved.problem);
  return text;
}

std::string worker_text(const ElasticReportInput& input, int worker) {
  const auto row = input.history.workers().find(worker);
  if (row == input.history.workers().end()) return {};
  const auto& history = row->second;
  const auto fate = history.exit
                        ? describe(*history.exit) + " after " + describe(history.exit->lived)
                        : history.lost;
  auto text = fmt::format("  the first to fail was worker {} on {}: {}\n", worker, history.host,
                          fate.empty() ? "not ended" : fate);
  if (!input.last_lines.empty()) text += "  its last lines:\n";
  for (const auto& line : input.last_lines) text += fmt::format("    | {}\n", line);
  return text;
}

std::string output_text(const ElasticReportInput& input) {
  if (input.output_directory.empty()) return {};
  if (!input.end.worker) return fmt::format("  output: {}\n", input.output_directory);
  return fmt::format("  output: {}/rank.{:0{}}, of all workers: {}\n", input.output_directory,
                     *input.end.worker, input.rank_digits, input.output_directory);
}

void write_optional(JsonWriter& json, std::optional<Duration> duration) {
  if (duration) {
    json.value(seconds(*duration));
  } else {
    json.null();
  }
}

void write_left(JsonWriter& json, const GenerationHistory& row,
                const std::map<int, WorkerHistory>& workers) {
  json.key("left").begin_array();
  for (const auto& left : row.formed.left) {
    const auto worker = workers.find(left.worker);
    json.begin_object().key("worker").value(left.worker).key("host");
    json.value(worker == workers.end() ? std::string() : worker->second.host);
    json.key("why").value(left.why).key("failed").value(left.failed).end_object();
  }
  json.end_array();
}

void write_resumed(JsonWriter& json, const GenerationHistory& row) {
  const auto& resumed = row.resumed;
  json.key("stood_still_seconds");
  write_optional(json, resumed ? std::optional(resumed->stood_still) : std::nullopt);
  json.key("repeated_steps");
  if (resumed && resumed->repeated) {
    json.value(*resumed->repeated);
  } else {
    json.null();
  }
}

void write_generation(JsonWriter& json, const ElasticReportInput& input,
                      const GenerationHistory& row) {
  json.begin_object();
  json.key("generation").value(static_cast<std::int64_t>(row.formed.generation));
  json.key("seconds").value(seconds(row.at - input.begun));
  json.key("new_ranks_after_seconds");
  write_optional(json, row.new_ranks_after);
  write_resumed(json, row);
  json.key("size").value(static_cast<int>(row.formed.members.size()));
  json.key("survivors").value(static_cast<int>(row.formed.survivors));
  json.key("joined").begin_array();
  for (const int worker : row.formed.joined) json.value(worker);
  json.end_array();
  write_left(json, row, input.history.workers());
  json.key("members").begin_array();
  for (std::size_t rank = 0; rank < row.formed.members.size(); ++rank) {
    json.begin_object().key("rank").value(static_cast<int>(rank));
    json.key("worker").value(row.formed.members[rank].worker);
    json.key("host").value(row.hosts[rank]).end_object();
  }
  json.end_array().end_object();
}

void write_attempts(JsonWriter& json, const std::vector<Attempt>& earlier) {
  json.key("restarts").value(static_cast<int>(earlier.size()));
  json.key("earlier_attempts").begin_array();
  for (const auto& attempt : earlier) {
    json.begin_object().key("job_id").value(attempt.job_id);
    json.key("exit_code").value(attempt.exit_code).key("seconds").value(seconds(attempt.elapsed));
    json.key("failure").value(attempt.failure).end_object();
  }
  json.end_array();
}

std::string_view state_of(const WorkerHistory& worker) {
  if (worker.exit) return "ended";
  if (!worker.lost.empty()) return worker.started ? "lost" : "not_started";
  return worker.started ? "running" : "not_started";
}

void write_workers(JsonWriter& json, const ElasticReportInput& input) {
  json.key("workers").begin_array();
  for (const auto& [number, worker] : input.history.workers()) {
    json.begin_object().key("worker").value(number).key("host").value(worker.host);
    json.key("slot").value(worker.slot).key("state").value(state_of(worker));
    if (worker.exit) write_exit(json, *worker.exit);
    if (!worker.lost.empty()) json.key("why").value(worker.lost);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string end_report(const ElasticReportInput& input) {
  if (input.end.failure.empty() && input.signal == 0) return {};
  auto text = fmt::format("horo: {}\n", headline(input));
  if (input.end.worker) text += worker_text(input, *input.end.worker);
  for (std::size_t i = 0; i < input.earlier.size(); ++i)
    text += fmt::format("  attempt {} before: {}\n", i, input.earlier[i].failure);
  return text + output_text(input) + timeline_text(input.timeline);
}

std::string success_report(const ElasticReportInput& input) {
  return fmt::format("horo: the job ended well after {}; workers: {}; generations: {}\n",
                     describe(input.elapsed), input.history.workers().size(),
                     input.history.generations().size());
}

Attempt summarize(const ElasticReportInput& input) {
  return {.job_id = input.job_id,
          .failure = headline(input),
          .exit_code = input.end.exit_code,
          .elapsed = input.elapsed};
}

std::string json_report(const ElasticReportInput& input) {
  JsonWriter json;
  json.begin_object();
  json.key("job_id").value(input.job_id).key("program").value(input.program);
  json.key("elastic").value(true);
  json.key("exit_code").value(input.end.exit_code).key("seconds").value(seconds(input.elapsed));
  json.key("stop_signal");
  if (input.signal != 0) {
    json.value(input.signal);
  } else {
    json.null();
  }
  json.key("failure");
  if (!input.end.failure.empty()) {
    json.value(input.end.failure);
  } else {
    json.null();
  }
  json.key("first_failed_worker");
  if (input.end.worker) {
    json.value(*input.end.worker);
  } else {
    json.null();
  }
  json.key("last_lines").begin_array();
  for (const auto& line : input.last_lines) json.value(line);
  json.end_array();
  write_attempts(json, input.earlier);
  json.key("generations").begin_array();
  for (const auto& row : input.history.generations()) write_generation(json, input, row);
  json.end_array();
  write_workers(json, input);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace horo::launcher
