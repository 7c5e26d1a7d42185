// SPDX-License-Identifier: Apache-2.0
#include "apps/run/plan.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

#include "apps/run/environment.hpp"
#include "apps/run/ports.hpp"
#include "base/kv/auth.hpp"
#include "base/version.hpp"
#include "discovery/sources/hostfile.hpp"
#include "discovery/sources/local.hpp"
#include "discovery/sources/static.hpp"
#include "discovery/this_machine.hpp"

namespace horo::apps {

namespace {

// Every rank of this version is on this machine, so loopback is how they meet.
constexpr std::string_view kAddress = "127.0.0.1";
constexpr std::string_view kHorovodTag = "[{rank}]<{stream}>:";

std::string_view value_of(const char* const* environment, std::string_view name) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

Result<discovery::HostSet> list_hosts(const RunOptions& options) {
  std::unique_ptr<discovery::HostSource> source;
  if (!options.hosts.empty()) {
    source = std::make_unique<discovery::StaticSource>(options.hosts);
  } else if (!options.hostfile.empty()) {
    source = std::make_unique<discovery::HostfileSource>(options.hostfile);
  } else {
    source = std::make_unique<discovery::LocalSource>(options.np.value_or(1));
  }
  auto hosts = source->list(Deadline::never());
  if (!hosts) return hosts;
  return discovery::only_this_machine(*hosts);
}

Result<launcher::TagFormat> choose_tag(const RunInvocation& invocation, int size) {
  const auto mode = invocation.settings.get(knobs::kTag);
  const bool chosen = invocation.settings.is_set(knobs::kPrefix.text.key);
  const bool horovod = invocation.options.horovod;
  if (mode == TagMode::off) return launcher::TagFormat{};
  if (mode == TagMode::automatic && size == 1 && !chosen && !horovod) return launcher::TagFormat{};
  if (horovod && !chosen) return launcher::TagFormat::parse(kHorovodTag);
  return launcher::TagFormat::parse(invocation.settings.get(knobs::kPrefix));
}

Result<launcher::OutputOptions> choose_output(const RunInvocation& invocation,
                                              const PlanContext& context, const Plan& plan) {
  launcher::OutputOptions output;
  HORO_TRY(output.tag, choose_tag(invocation, static_cast<int>(plan.placement.ranks.size())));
  output.timestamps = invocation.settings.get(knobs::kPrefixTimestamp);
  output.time_style =
      invocation.options.horovod ? launcher::TimeStyle::asctime : launcher::TimeStyle::iso;
  output.tagged_files = invocation.options.horovod;
  output.colours = value_of(context.environment, "NO_COLOR").empty() &&
                   value_of(context.environment, "TERM") != "dumb";
  output.job_id = plan.job_id;
  return output;
}

/// Rank numbers and addresses, as far as they are known before the job starts.
Result<std::vector<WorkerIdentity>> identify(const Plan& plan) {
  const auto& placement = plan.placement;
  const int size = static_cast<int>(placement.ranks.size());
  HORO_TRY(const auto ports, free_ports(size + 1));
  std::vector<std::string> addresses;
  addresses.reserve(placement.ranks.size());
  for (int r = 0; r < size; ++r) {
    addresses.push_back(fmt::format("{}:{}", kAddress, ports[static_cast<std::size_t>(r) + 1]));
  }
  std::vector<WorkerIdentity> identities;
  identities.reserve(placement.ranks.size());
  for (const auto& placed : placement.ranks) {
    identities.push_back({.rank = placed.rank,
                          .size = size,
                          .local_rank = placed.local_rank,
                          .local_size = placed.local_size,
                          .cross_rank = placed.cross_rank,
                          .cross_size = placed.cross_size,
                          .host_index = static_cast<int>(placed.host),
                          .hostname = placement.hosts[placed.host].name,
                          .job_id = plan.job_id,
                          .rendezvous = {},
                          .master_address = std::string(kAddress),
                          .master_port = ports[0],
                          .worker_addresses = addresses,
                          .launcher_version = version_code()});
  }
  return identities;
}

/// What each of several ranks may use without taking another's cores; 0 where that is the user's
/// affair. Frameworks start a thread per core otherwise, in every rank.
int choose_threads(const PlanContext& context, const launcher::Placement& placement) {
  if (!value_of(context.environment, "OMP_NUM_THREADS").empty()) return 0;
  int most = 1;
  for (const auto& host : placement.hosts) most = std::max(most, host.count);
  return most == 1 ? 0 : std::max(1, context.cores / most);
}

std::string make_job_id(const kv::Secret& random) {
  std::string id;
  for (std::size_t i = 0; i < 6; ++i) id += fmt::format("{:02x}", random[i]);
  return id;
}

}  // namespace

Result<Plan> make_plan(const RunInvocation& invocation, const PlanContext& context) {
  const auto& options = invocation.options;
  Plan plan;
  plan.program = context.program;
  HORO_TRY(const auto hosts, list_hosts(options));
  const int np = options.np.value_or(static_cast<int>(hosts.slots()));
  HORO_TRY(plan.placement, launcher::place(hosts, {.np = np}));
  HORO_TRY(const auto random, kv::make_secret());
  plan.job_id = make_job_id(random);
  HORO_TRY(plan.output, choose_output(invocation, context, plan));
  HORO_TRY(const auto identities, identify(plan));
  HORO_TRY(const auto secret, kv::make_secret());
  plan.common = invocation.settings.exported();
  // Without it torch's Gloo listens where this machine's name leads, which may be nowhere.
  if (const auto loopback = loopback_interface();
      !loopback.empty() && value_of(context.environment, "GLOO_SOCKET_IFNAME").empty()) {
    plan.common.emplace_back("GLOO_SOCKET_IFNAME", loopback);
  }
  plan.threads = choose_threads(context, plan.placement);
  if (plan.threads != 0) {
    plan.common.emplace_back("OMP_NUM_THREADS", std::to_string(plan.threads));
  }
  auto environment = inherited_environment(context.environment, plan.common);
  environment.insert(environment.end(), plan.common.begin(), plan.common.end());
  const auto stdin_mode = invocation.settings.get(knobs::kStdin);
  for (const auto& host : plan.placement.hosts) {
    const auto first = identities.begin() + host.first.value();
    plan.agents.push_back({.host = host.name,
                           .command = options.command,
                           .directory = context.directory,
                           .environment = environment,
                           .ranks = {first, first + host.count},
                           .stdin_policy = stdin_mode == StdinMode::rank0
                                               ? launcher::StdinPolicy::rank0
                                               : launcher::StdinPolicy::none,
                           .failure_grace = invocation.settings.get(knobs::kFailureGrace),
                           .grace = invocation.settings.get(knobs::kGrace),
                           .secret = secret});
  }
  return plan;
}

}  // namespace horo::apps
