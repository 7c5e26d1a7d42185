// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/start_probe.hpp"

#include <optional>
#include <pwd.h>
#include <unistd.h>
#include <utility>

#include "base/knobs/launcher_knobs.hpp"
#include "discovery/this_machine.hpp"

namespace horo::launcher {

namespace {

constexpr Duration kConfigurationTime = std::chrono::minutes(1);

/// Ranks on this machine run as the launcher's user: there is no login that could change it.
Status check_user(const PlacedHost& host) {
  if (host.user.empty()) return {};
  const auto* entry = getpwuid(geteuid());
  const std::string own = entry == nullptr ? "" : entry->pw_name;
  if (host.user == own) return {};
  return fail(Errc::invalid_argument,
              "host '{}' is this machine, where ranks run as '{}'; leave '{}@' out", host.name, own,
              host.user);
}

/// Hosts that are reached by ssh.
struct SshHosts {
  std::vector<std::string> names;   ///< "h1", "eva@h1".
  std::vector<std::size_t> places;  ///< Their numbers in the placement.

  void add(const PlacedHost& host, std::size_t place) {
    names.push_back(host.user.empty() ? host.name : fmt::format("{}@{}", host.user, host.name));
    places.push_back(place);
  }
};

/// Adds the ssh routes of `hosts`, and the tree by which their agents start each other.
Status add_ssh(StartPlan& plan, const SshHosts& hosts, const std::string& why_not_batch, int fanout,
               int cancel) {
  const WaitLimit limit(Deadline::in(SteadyClock::instance(), kConfigurationTime), cancel);
  HORO_TRY(auto routes, find_ssh_routes(hosts.names, plan.ssh, limit));
  std::vector<bool> in_tree(plan.hosts.size());
  for (std::size_t i = 0; i < hosts.names.size(); ++i) {
    auto& route = routes[i];
    in_tree[hosts.places[i]] = true;
    plan.hosts[hosts.places[i]] = {
        .method = route.program.empty() ? StartMethod::ssh : StartMethod::ssh_program,
        .route = route,
        .why = route.reason.empty() ? why_not_batch : route.reason};
  }
  plan.tree = plan_tree(in_tree, static_cast<std::size_t>(fanout));
  return {};
}

}  // namespace

Result<StartPlan> probe_starts(const Placement& placement, const Settings& settings,
                               const std::function<const char*(const char*)>& lookup, int cancel) {
  StartPlan plan{.hosts = std::vector<HostStart>(placement.hosts.size()),
                 .ssh = {.port = settings.get(knobs::kSshPort),
                         .identity_file = settings.get(knobs::kSshIdentityFile),
                         .program = settings.get(knobs::kSshProgram)},
                 .tree = {}};
  plan.tree.parents.resize(plan.hosts.size());
  std::optional<BatchSystem> batch;
  SshHosts by_ssh;
  for (std::size_t i = 0; i < placement.hosts.size(); ++i) {
    const auto& host = placement.hosts[i];
    if (discovery::is_this_machine(host.name)) {
      HORO_TRY_STATUS(check_user(host));
      continue;
    }
    if (!batch) {
      HORO_TRY(batch, BatchSystem::find(settings, lookup, cancel));
    }
    HORO_TRY(auto start, batch->start_for(host.name));
    if (start) {
      auto why = start->why;
      plan.hosts[i] = {.method = StartMethod::batch,
                       .route = {},
                       .batch = std::move(*start),
                       .why = std::move(why)};
    } else {
      by_ssh.add(host, i);
    }
  }
  if (by_ssh.names.empty()) return plan;
  HORO_TRY_STATUS(add_ssh(plan, by_ssh, batch->why_not(), settings.get(knobs::kFanout), cancel));
  return plan;
}

}  // namespace horo::launcher
