// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/start_plan.hpp"

#include <algorithm>

#include <fmt/ranges.h>

namespace horo::launcher {

bool StartPlan::has(StartMethod method) const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [method](const HostStart& start) { return start.method == method; });
}

bool StartPlan::uses_other_hosts() const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [](const HostStart& start) { return start.method != StartMethod::local; });
}

std::string names_of(const StartPlan& plan) {
  std::vector<std::string_view> names;
  if (plan.has(StartMethod::local)) names.emplace_back("local");
  if (plan.has(StartMethod::ssh) || plan.has(StartMethod::ssh_program)) names.emplace_back("ssh");
  for (const auto& host : plan.hosts) {
    const auto program = name(host.batch.program);
    if (host.method == StartMethod::batch &&
        std::find(names.begin(), names.end(), program) == names.end())
      names.push_back(program);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string describe_tree(const StartPlan& plan) {
  if (plan.tree.levels < 2) return {};
  std::vector<std::size_t> children(plan.hosts.size());
  for (const auto& parent : plan.tree.parents) {
    if (parent) ++children[*parent];
  }
  return fmt::format("agents in {} levels, at most {} started from any host", plan.tree.levels,
                     *std::max_element(children.begin(), children.end()));
}

std::string describe(const HostStart& start) {
  const auto why = start.why.empty() ? "" : fmt::format(" ({})", start.why);
  const auto& route = start.route;
  switch (start.method) {
    case StartMethod::local:
      return "here";
    case StartMethod::batch:
      return start.batch.program == RemoteProgram::rsh
                 ? fmt::format("by {}{}", fmt::join(start.batch.before, " "), why)
                 : fmt::format("by {}{}", name(start.batch.program), why);
    case StartMethod::ssh_program:
      return fmt::format("by the program {}{}", route.program, why);
    case StartMethod::ssh:
      break;
  }
  return fmt::format("by ssh as {} to {}, port {}{}", route.user, route.name, route.port, why);
}

}  // namespace horo::launcher
