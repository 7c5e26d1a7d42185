// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "timeline/analysis/verdict.hpp"
#include "timeline/view/figures_text.hpp"

namespace horo::timeline {

namespace {

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

void write(JsonWriter& json, const Histogram& h) {
  json.begin_object().key("count").value(number(h.count())).key("mean_ns").value(h.mean());
  json.key("median_ns").value(h.percentile(0.5)).key("p95_ns").value(h.percentile(0.95));
  json.key("error_ns").value(h.error()).key("most_ns").value(h.most()).end_object();
}

void write_ranks(JsonWriter& json, const Figures& f) {
  json.key("ranks").begin_array();
  for (const auto& [rank, r] : f.ranks) {
    if (!f.shows(rank)) continue;
    json.begin_object().key("rank").value(rank).key("host").value(r.host);
    json.key("arrivals").value(number(r.arrivals)).key("last").value(number(r.last));
    json.key("last_by_ns").value(r.last_by_ns);
    json.key("caused_wait_ns").value(r.caused_wait_ns).key("late_ns").value(r.late_ns);
    json.key("waited_ns").value(r.waited_ns).key("communicated_ns").value(r.communicated_ns);
    json.key("exposed_ns").value(r.exposed_ns).key("computed_ns").value(r.computed_ns);
    json.key("dropped").value(number(r.dropped)).end_object();
  }
  json.end_array();
}

void write_sizes(JsonWriter& json, const Figures& f) {
  json.key("sizes").begin_array();
  for (const auto& [least, s] : f.sizes) {
    json.begin_object().key("least_bytes").value(number(least));
    json.key("operations").value(number(s.operations)).key("bytes").value(s.bytes);
    json.key("best_gb_per_s").value(s.best);
    json.key("ns").value(s.ns).key("bus_gb_per_s").value(s.ns > 0 ? s.bus_bytes / s.ns : 0.0);
    json.end_object();
  }
  json.end_array();
}

void write_paths(JsonWriter& json, const Figures& f) {
  json.key("paths").begin_array();
  for (const auto& [path, operations] : f.paths) {
    json.begin_object().key("path").value(path.first).key("reason").value(path.second);
    json.key("operations").value(number(operations)).end_object();
  }
  json.end_array();
}

void write_skews(JsonWriter& json, const Figures& f) {
  json.key("skews").begin_array();
  for (const auto& skew : f.skews) {
    json.begin_object().key("name").value(skew.name);
    json.key("operations").value(number(skew.operations));
    json.key("ns").value(skew.ns).key("most_ns").value(skew.most_ns).end_object();
  }
  json.end_array();
}

void write_steps(JsonWriter& json, const Figures& f) {
  json.key("step");
  write(json, f.step);
  json.key("steps").begin_array();
  for (const auto& step : f.steps) {
    json.begin_object().key("at_ns").value(step.from - f.origin_ns);
    json.key("took_ns").value(step.to - step.from).end_object();
  }
  json.end_array();
}

/// The mean lateness of each rank in each part of the time; -1: unknown.
void write_late(JsonWriter& json, const Figures& f) {
  constexpr std::size_t kMostRanks = 256;
  std::vector<std::pair<double, int>> worst;
  for (const auto& [rank, row] : f.late.rows()) {
    if (f.shows(rank)) worst.emplace_back(-f.ranks.at(rank).late_ns, rank);
  }
  std::sort(worst.begin(), worst.end());
  worst.resize(std::min(worst.size(), kMostRanks));
  std::sort(worst.begin(), worst.end(), [](auto& a, auto& b) { return a.second < b.second; });
  json.key("late").begin_object().key("part_ns").value(number(f.late.width_ns()));
  json.key("ranks").begin_array();
  for (const auto& [late, rank] : worst) {
    json.begin_object().key("rank").value(rank).key("mean_ns").begin_array();
    for (const auto& part : f.late.rows().at(rank))
      json.value(part.times > 0 ? std::round(part.late_ns / part.times) : -1);
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

void write_device(JsonWriter& json, const Figures& f) {
  const auto& device = f.device;
  json.key("device").begin_object().key("operations").value(number(device.operations));
  json.key("worked_ns").value(device.worked_ns).key("host_ns").value(device.host_ns);
  json.key("activities").begin_array();
  for (const auto& [name, activity] : device.activities) {
    json.begin_object().key("name").value(name).key("times").value(number(activity.times));
    json.key("ns").value(activity.ns).end_object();
  }
  json.end_array().key("missing").begin_array();
  for (const auto& [reason, operations] : device.missing) {
    json.begin_object().key("reason").value(reason);
    json.key("operations").value(number(operations)).end_object();
  }
  json.end_array().end_object();
}

void write_clocks(JsonWriter& json, const Figures& f) {
  json.key("clocks").begin_array();
  for (const auto& [host, clock] : f.clocks) {
    json.begin_object().key("host").value(host).key("moved_ns").value(clock.moved_ns);
    json.key("error_ns");
    if (clock.error_ns < 0) {
      json.null();
    } else {
      json.value(clock.error_ns);
    }
    json.end_object();
  }
  json.end_array();
}

void write_slowest(JsonWriter& json, const Figures& f) {
  json.key("slowest").begin_array();
  for (const auto& s : f.slowest) {
    json.begin_object().key("at_ns").value(s.at_ns).key("took_ns").value(s.took_ns);
    json.key("negotiated_ns").value(s.negotiated_ns).key("moved_ns").value(s.moved_ns);
    json.key("device_ns").value(s.device_ns);
    json.key("bytes").value(number(s.bytes)).key("tensors").value(static_cast<int>(s.tensors));
    json.key("kind").value(s.kind).key("name").value(s.name).key("last_rank").value(s.last_rank);
    json.end_object();
  }
  json.end_array();
}

void write_generations(JsonWriter& json, const Figures& f) {
  json.key("generations").begin_array();
  for (const auto& [generation, mark] : f.generations) {
    json.begin_object().key("at_ns").value(mark.ns - f.origin_ns);
    json.key("generation").value(number(generation)).key("ranks").value(mark.ranks);
    json.key("survivors").value(mark.survivors).end_object();
  }
  json.end_array();
}

void write_switches(JsonWriter& json, const Figures& f) {
  json.key("tuning_switches").begin_array();
  for (const auto& one : f.switches) {
    json.begin_object().key("at_ns").value(one.ns - f.origin_ns);
    json.key("changes").value(one.changes).end_object();
  }
  json.end_array();
}

void write(JsonWriter& json, const Figures& f) {
  json.begin_object().key("span_ns").value(f.span_ns());
  json.key("operations").value(number(f.operations)).key("tensors").value(number(f.tensors));
  json.key("bytes").value(f.bytes).key("moving_ns").value(f.moving_ns);
  json.key("busy_ns").value(f.busy_ns).key("held_up_ns").value(f.held_up_ns);
  json.key("packing_ns").value(f.packing_ns).key("fused").value(number(f.fused));
  json.key("small").value(number(f.small)).key("stalls").value(number(f.stalls));
  json.key("knows_waits").value(f.knows_waits).key("knows_compute").value(f.knows_compute);
  json.key("verdicts").begin_array();
  for (const auto& verdict : judge(f)) {
    json.begin_object().key("kind").value(verdict.kind).key("share").value(verdict.weight);
    json.key("text").value(verdict.text).end_object();
  }
  json.end_array();
  json.key("mismatches").begin_array();
  for (const auto& [name, times] : f.mismatches) {
    json.begin_object().key("name").value(name).key("times").value(number(times)).end_object();
  }
  json.end_array();
  write_generations(json, f);
  write_switches(json, f);
  json.key("negotiation");
  write(json, f.negotiation);
  json.key("queue");
  write(json, f.queue);
  write_ranks(json, f);
  write_sizes(json, f);
  write_paths(json, f);
  write_steps(json, f);
  write_skews(json, f);
  write_device(json, f);
  write_late(json, f);
  write_clocks(json, f);
  write_slowest(json, f);
  json.key("warnings").begin_array();
  for (const auto& line : f.warnings) json.value(line);
  json.end_array().end_object();
}

}  // namespace

std::string as_json(const Figures& figures) {
  JsonWriter json;
  write(json, figures);
  return json.text() + "\n";
}

std::string one_line(std::string_view json) {
  std::string line;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '\n') {
      line += json[i];  // JSON strings contain no line ends.
      continue;
    }
    while (i + 1 < json.size() && json[i + 1] == ' ') ++i;
  }
  return line + "\n";
}

std::string compare_json(const Figures& before, const Figures& after) {
  JsonWriter json;
  json.begin_object().key("before");
  write(json, before);
  json.key("after");
  write(json, after);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace horo::timeline
