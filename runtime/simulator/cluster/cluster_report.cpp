// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/cluster_report.hpp"

#include "base/json.hpp"

namespace horo::runtime::sim {

namespace {

double us(Duration time) {
  return static_cast<double>(time.count()) / 1e3;
}

std::int64_t whole(std::uint64_t number) {
  return static_cast<std::int64_t>(number);
}

void write(JsonWriter& json, const FrameCounters& counters, std::string_view who) {
  json.key(fmt::format("{}_frames", who)).value(whole(counters.frames));
  json.key(fmt::format("{}_bytes", who)).value(whole(counters.bytes));
}

void write(JsonWriter& json, const LaunchModel& model, const LaunchReport& launch) {
  json.key("launch").begin_object().key("fanout").value(model.fanout);
  json.key("levels_us").begin_array();
  for (const auto level : launch.levels) json.value(us(level));
  json.end_array().key("ranks_us").value(us(launch.ranks));
  write(json, launch.sent, "sent");
  write(json, launch.received, "received");
  write(json, launch.relayed, "relayed");
  json.key("most_children").value(launch.most_children);
  json.key("most_logins").value(launch.most_logins).end_object();
}

void write(JsonWriter& json, const StartReport& start) {
  json.key("hosts_known_us").value(us(start.hosts_known));
  json.key("leaders_us").value(us(start.leaders));
  json.key("addresses_us").value(us(start.addresses_known));
  json.key("connected_us").value(us(start.connected));
  json.key("store_requests").value(whole(start.store.requests));
  json.key("store_bytes").value(whole(start.store.bytes_in + start.store.bytes_out));
  json.key("store_busy_us").value(us(start.store.busy));
  json.key("store_most_keys").value(whole(start.store.most_keys));
  json.key("store_keys_left").value(whole(start.keys_left));
}

void write(JsonWriter& json, const SumReport& sum) {
  json.begin_object().key("bytes").value(whole(sum.bytes)).key("path").value(sum.path);
  json.key("algorithm").value(sum.algorithm).key("first_us").value(us(sum.first));
  json.key("us").value(us(sum.again)).key("host_bytes").value(whole(sum.most_sent));
  json.key("messages").value(whole(sum.messages)).end_object();
}

void write_job(JsonWriter& json, const ClusterReport& report) {
  write(json, report.start);
  json.key("first_us").value(us(report.first.latency));
  json.key("cached_us").value(us(report.cached.latency));
  json.key("cached_bytes").value(whole(report.cached.most_bytes));
  if (!report.sums.empty()) {
    json.key("first_sum_us")
        .value(us(report.start.connected + report.first.latency + report.sums.front().first));
  }
  json.key("sums").begin_array();
  for (const auto& sum : report.sums) write(json, sum);
  json.end_array();
  json.key("connections").value(whole(report.connections));
  json.key("most_connections").value(whole(report.most_connections));
  json.key("losses").begin_array();
  for (const auto& loss : report.losses) {
    json.begin_object().key("host").value(loss.failure.host);
    json.key("how").value(name(loss.failure.how));
    json.key("known_us").value(us(loss.known)).end_object();
  }
  json.end_array();
}

}  // namespace

std::string to_json(const Cluster& cluster, const ClusterReport& report) {
  JsonWriter json;
  json.begin_object();
  json.key("ranks").value(cluster.ranks()).key("hosts").value(cluster.hosts());
  json.key("tensors").value(cluster.tensors);
  if (report.launch) write(json, cluster.launch, *report.launch);
  const bool has_run = report.start.connected > Duration::zero();
  if (has_run) write_job(json, report);
  json.end_object();
  return json.text();
}

}  // namespace horo::runtime::sim
