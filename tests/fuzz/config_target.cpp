// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include "apps/common/config_file.hpp"
#include "apps/common/plan_file.hpp"

namespace horo::fuzz {

namespace {

std::string run_config(std::string_view bytes) {
  const auto given = apps::parse_config(std::string(bytes), "job.yaml");
  if (given) {
    for (const auto& entry : *given) {
      if (!entry.place.starts_with("job.yaml:")) return "an assignment does not name its place";
    }
    return "";
  }
  if (given.error().code != Errc::invalid_argument) return "the error is not invalid_argument";
  return given.error().message.starts_with("job.yaml:") ? "" : "the error does not name its place";
}

std::string run_plan(std::string_view bytes) {
  const auto plan = apps::parse_plan_file(std::string(bytes), "p.json");
  if (!plan) {
    if (plan.error().code != Errc::invalid_argument) return "the error is not invalid_argument";
    return plan.error().message.starts_with("p.json:") ? "" : "the error does not name its place";
  }
  std::size_t ranks = 0;
  for (const auto& host : plan->hosts) ranks += host.ranks.size();
  std::vector<bool> placed(ranks, false);
  for (const auto& host : plan->hosts) {
    for (const int rank : host.ranks) {
      if (placed.at(static_cast<std::size_t>(rank))) return "a rank is on two hosts";
      placed[static_cast<std::size_t>(rank)] = true;
    }
  }
  return "";
}

}  // namespace

std::vector<Target> config_targets() {
  return {{.name = "plan",
           .run = run_plan,
           .seeds = {R"({"horo_plan": 1, "command": ["x", "y"], "directory": "/", "bind_to": "core",
"gpus": "off", "hosts": [{"name": "a", "ranks": "0-1,3"}, {"name": "fe80::1", "ranks": "2"}]})"},
           .words = {"\"ranks\": ", "\"name\": ", "0-1", ",", "-", "[", "]", "{", "}", "&a ", "*a",
                     "999999", "null"},
           .rounds = 4000},
          {.name = "config",
           .run = run_config,
           .seeds = {"fusion:\n  threshold: 64MiB\n  cycle-time: 0\nlog:\n  level: 'debug'\n",
                     "a: &x {b: 1, c: [1, 2]}\nd: *x\n", "# nothing\n---\n{}\n"},
           .words = {": ", "\n", "  ", "- ", "[", "]", "{", "}", "&a ", "*a", "!!binary ", "\"",
                     "'", "|", "---\n", "%TAG", "\t", "<<: *x"},
           .rounds = 4000}};
}

}  // namespace horo::fuzz
