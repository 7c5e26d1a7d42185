// SPDX-License-Identifier: Apache-2.0
#include "timeline/view/live_members.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "timeline/analysis/verdict.hpp"
#include "timeline/view/figures_text.hpp"

namespace horo::timeline {

namespace {

constexpr std::size_t kMostHosts = 8;

std::string_view name(LiveHostUse use) {
  switch (use) {
    case LiveHostUse::used:
      return "used";
    case LiveHostUse::put_aside:
      return "put_aside";
    case LiveHostUse::leaving:
      return "leaving";
    case LiveHostUse::gone:
      return "gone";
  }
  return "";
}

std::string counted(int number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string head_line(const LiveMembership& members) {
  auto text = members.generation == 0 ? std::string("no generation yet")
                                      : fmt::format("generation {}: {}", members.generation,
                                                    counted(members.ranks, "rank"));
  text += members.max_np == 0 ? fmt::format(" ({} or more)", members.min_np)
                              : fmt::format(" ({} to {})", members.min_np, members.max_np);
  if (members.wanted_spares != 0)
    text += fmt::format(", {} of {} spares ready", members.spares, members.wanted_spares);
  if (members.wanted_spares == 0 && members.spares != 0)
    text += fmt::format(", {} more ready to join", members.spares);
  if (members.starting != 0) text += fmt::format(", {} starting", members.starting);
  return text + "; " + members.state;
}

std::string processes_text(const LiveHost& host) {
  return host.processes == 1 ? "1 process is" : fmt::format("{} processes are", host.processes);
}

std::string time_left(const LiveHost& host, std::string_view words) {
  if (host.for_ns < 0) return {};
  return fmt::format(" {} {}", words, time_text(static_cast<double>(host.for_ns)));
}

std::string host_line(const LiveHost& host) {
  switch (host.use) {
    case LiveHostUse::put_aside:
      return fmt::format("host {} is put aside{}: {}", host.name,
                         host.for_ns < 0 ? std::string(" for good") : time_left(host, "for"),
                         host.why);
    case LiveHostUse::leaving:
      if (host.processes == 0) return fmt::format("host {} has left: {}", host.name, host.why);
      return fmt::format("host {} leaves: {}; {} still there{}", host.name, host.why,
                         processes_text(host), time_left(host, "for at most"));
    case LiveHostUse::gone:
      return fmt::format("host {} leaves: {}; {} still there", host.name, host.why,
                         processes_text(host));
    case LiveHostUse::used:
      break;
  }
  return {};
}

/// A host that is no longer offered is of no interest once its processes are gone.
bool is_told(const LiveHost& host) {
  return host.use != LiveHostUse::used && (host.use != LiveHostUse::gone || host.processes > 0);
}

}  // namespace

std::vector<std::string> member_lines(const LiveMembership& members) {
  std::vector<std::string> lines{head_line(members)};
  std::size_t told = 0;
  for (const auto& host : members.hosts) {
    if (is_told(host) && ++told <= kMostHosts) lines.push_back(host_line(host));
  }
  if (told > kMostHosts)
    lines.push_back(fmt::format("and {} more hosts are not used", told - kMostHosts));
  return lines;
}

void write(JsonWriter& json, const LiveMembership& members) {
  json.begin_object().key("generation").value(static_cast<std::int64_t>(members.generation));
  json.key("ranks").value(members.ranks).key("min_np").value(members.min_np).key("max_np");
  if (members.max_np == 0) {
    json.null();
  } else {
    json.value(members.max_np);
  }
  json.key("spares").value(members.spares).key("wanted_spares").value(members.wanted_spares);
  json.key("starting").value(members.starting).key("state").value(members.state);
  json.key("hosts").begin_array();
  for (const auto& host : members.hosts) {
    json.begin_object().key("host").value(host.name).key("slots").value(host.slots);
    json.key("ranks").value(host.ranks).key("processes").value(host.processes);
    json.key("use").value(name(host.use)).key("why").value(host.why).key("for_ns");
    if (host.for_ns < 0) {
      json.null();
    } else {
      json.value(host.for_ns);
    }
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace horo::timeline
