// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include "apps/common/config_file.hpp"

namespace horo::fuzz {

namespace {

std::string run_config(std::string_view bytes) {
  const auto given = apps::parse_config(std::string(bytes), "job.yaml");
  if (given) {
    for (const auto& entry : *given) {
      if (!entry.place.starts_with("job.yaml:")) return "an assignment without its place";
    }
    return "";
  }
  if (given.error().code != Errc::invalid_argument) return "another error than invalid_argument";
  return given.error().message.starts_with("job.yaml:") ? "" : "an error without its place";
}

}  // namespace

std::vector<Target> config_targets() {
  return {{.name = "config",
           .run = run_config,
           .seeds = {"fusion:\n  threshold: 64MiB\n  cycle-time: 0\nlog:\n  level: 'debug'\n",
                     "a: &x {b: 1, c: [1, 2]}\nd: *x\n", "# nothing\n---\n{}\n"},
           .words = {": ", "\n", "  ", "- ", "[", "]", "{", "}", "&a ", "*a", "!!binary ", "\"",
                     "'", "|", "---\n", "%TAG", "\t", "<<: *x"},
           .rounds = 4000}};
}

}  // namespace horo::fuzz
