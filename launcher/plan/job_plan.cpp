// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/job_plan.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/timeline_knobs.hpp"
#include "base/version.hpp"
#include "launcher/output/output_window.hpp"
#include "launcher/plan/jsrun_plan.hpp"

namespace horo::launcher {

namespace {

// Ranks that are all on this machine meet over loopback.
constexpr std::string_view kLoopback = "127.0.0.1";
/// TF_CONFIG names every rank to every rank, so its size grows with the square of this.
constexpr std::size_t kMostAddressed = 1024;
/// An elastic job's output is shared as if it had so many ranks, because it may get more.
constexpr std::size_t kElasticRanks = 256;
constexpr std::string_view kHorovodTag = "[{rank}]<{stream}>:";

Result<TagFormat> choose_tag(const JobRequest& request, int size) {
  const auto mode = request.settings.get(knobs::kTag);
  const bool chosen = request.settings.is_set(knobs::kPrefix.text.key);
  const bool horovod = request.format == OutputFormat::horovod;
  if (mode == TagMode::off) return TagFormat{};
  if (mode == TagMode::automatic && size == 1 && !chosen && !horovod) return TagFormat{};
  if (horovod && !chosen) return TagFormat::parse(kHorovodTag);
  return TagFormat::parse(request.settings.get(knobs::kPrefix));
}

Result<OutputOptions> choose_output(const JobRequest& request, const JobFacts& facts) {
  OutputOptions output;
  const auto size = static_cast<int>(facts.placement.ranks.size());
  const bool horovod = request.format == OutputFormat::horovod;
  // An elastic job may get more ranks, and equal lines of ranks that come and go are not joined.
  const bool grows = facts.elastic && facts.elastic->most > 1;
  HORO_TRY(output.tag, choose_tag(request, grows ? facts.elastic->most : size));
  output.timestamps = request.settings.get(knobs::kPrefixTimestamp);
  output.time_style = horovod ? TimeStyle::asctime : TimeStyle::iso;
  output.tagged_files = horovod;
  if (const auto list = request.settings.get(knobs::kOutputRanks); !list.empty()) {
    HORO_TRY(output.shown, parse_ranks(list, grows ? facts.elastic->most : size));
  }
  // A program that reads Horovod's format may count lines, so none are folded by default.
  if (const auto fold = request.settings.get(knobs::kFold); fold != FoldMode::automatic || horovod)
    output.fold = fold == FoldMode::on;
  if (facts.elastic) {
    output.fold = false;
    output.window = output_window(kElasticRanks);
  }
  const auto terminal = variable_or_empty(request.environment, "TERM");
  output.cursor = terminal != "dumb";
  output.colours = terminal != "dumb" && variable_or_empty(request.environment, "NO_COLOR").empty();
  output.job_id = facts.job_id;
  output.out_fd = request.out_fd;
  output.err_fd = request.err_fd;
  return output;
}

/// Address of each host, by host, as the other hosts know it.
std::vector<std::string> host_addresses(const JobFacts& facts) {
  const bool all_local = facts.all_local();
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < facts.placement.hosts.size(); ++i) {
    if (all_local) {
      addresses.emplace_back(kLoopback);
    } else {
      addresses.push_back(facts.local[i] ? facts.machine_name : facts.placement.hosts[i].name);
    }
  }
  return addresses;
}

/// host:port of every rank. All hosts get the ports that are free on this machine; several hosts
/// find free ports of their own when their agents have connected.
WorkerAddresses worker_addresses(const JobFacts& facts, const std::vector<std::string>& hosts) {
  const auto& ranks = facts.placement.ranks;
  if (ranks.size() > kMostAddressed) return {};
  std::vector<std::string> addresses;
  for (const auto& rank : ranks)
    addresses.push_back(with_port(hosts[rank.host], facts.ports[rank.local_rank.index() + 1]));
  return addresses;
}

/// Rank numbers and addresses, as far as they are known before the job starts.
std::vector<WorkerIdentity> identify(const JobFacts& facts) {
  const auto& placement = facts.placement;
  const auto hosts = host_addresses(facts);
  const auto addresses = worker_addresses(facts, hosts);
  std::vector<WorkerIdentity> identities;
  identities.reserve(placement.ranks.size());
  for (const auto& placed : placement.ranks) {
    identities.push_back({.rank = placed.rank,
                          .size = static_cast<int>(placement.ranks.size()),
                          .local_rank = placed.local_rank,
                          .local_size = placed.local_size,
                          .cross_rank = placed.cross_rank,
                          .cross_size = placed.cross_size,
                          .host_index = static_cast<int>(placed.host),
                          .hostname = placement.hosts[placed.host].name,
                          .job_id = facts.job_id,
                          .rendezvous = {},
                          .master_address = hosts[placement.ranks.front().host],
                          .master_port = facts.ports.front(),
                          .worker_addresses = addresses,
                          .launcher_version = version_code()});
  }
  return identities;
}

/// Threads that each rank may use without taking cores from another rank; 0: the user's value
/// counts. Frameworks otherwise start one thread per core in every rank.
int choose_threads(const JobRequest& request, const JobFacts& facts) {
  if (!variable_or_empty(request.environment, "OMP_NUM_THREADS").empty()) return 0;
  if (!facts.all_local()) return 0;  // Other hosts' agents know how many cores those have.
  int most = 1;
  for (const auto& host : facts.placement.hosts) most = std::max(most, host.count());
  return most == 1 ? 0 : std::max(1, facts.cores / most);
}

/// Where agents save the timelines of a failed job; empty: each in a folder of its own host.
std::string timeline_directory(const JobRequest& request) {
  auto path = request.settings.get(knobs::kTimelineDirectory);
  if (path.empty()) path = request.settings.get(knobs::kOutputFilename);
  if (path.empty() || path.front() == '/') return path;
  return fmt::format("{}/{}", request.directory, path);
}

/// Each rank of a host has a core of its own in the list.
Status check_thread_cores(const Settings& settings, const Placement& placement) {
  const auto list = settings.get(knobs::kThreadAffinity);
  if (list.empty()) return {};
  for (const auto& host : placement.hosts) {
    if (count_numbers(list) >= static_cast<std::size_t>(host.count())) continue;
    return fail(
        Errc::invalid_argument,
        "thread.affinity: '{}' ({}) has {} cores, but host '{}' has {} ranks; give one core "
        "for each",
        list, settings.origin("thread.affinity").text(), count_numbers(list), host.name,
        host.count());
  }
  return {};
}

Result<Environment> common_variables(const JobRequest& request, const JobFacts& facts,
                                     int threads) {
  HORO_TRY_STATUS(check_thread_cores(request.settings, facts.placement));
  auto common = request.settings.exported();
  HORO_TRY(const auto network, network_variables(request.settings));
  common.insert(common.end(), network.begin(), network.end());
  for (const auto* name : {"HORO_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"})
    common.emplace_back(name, std::to_string(request.restart_count));
  // Without it torch's Gloo listens at the address of this machine's name, which may be unusable.
  if (!facts.loopback_interface.empty() && facts.all_local() &&
      request.settings.get(knobs::kNetworkInterfaces).empty() &&
      variable_or_empty(request.environment, "GLOO_SOCKET_IFNAME").empty()) {
    common.emplace_back("GLOO_SOCKET_IFNAME", facts.loopback_interface);
  }
  common.insert(common.end(), request.extra_variables.begin(), request.extra_variables.end());
  if (request.starter != RankStarter::agents) {
    // Tells libhoro that rank numbers come from the ranks' MPI and not from this launcher's plan.
    for (const auto* name : {"HORO_CONTROLLER", "HOROVOD_CONTROLLER"})
      common.emplace_back(name, "mpi");
  }
  if (threads != 0) common.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
  return common;
}

EnvironmentFilter filter_of(const JobRequest& request) {
  return {request.settings.get(knobs::kEnvAllow), request.settings.get(knobs::kEnvDeny)};
}

/// The variables that all ranks inherit, followed by `common`.
Environment rank_environment(const JobRequest& request, const Environment& common) {
  auto environment = inherited_environment(request.environment, common, filter_of(request));
  environment.insert(environment.end(), common.begin(), common.end());
  return environment;
}

/// The fields that are the same for the agents of all hosts.
AgentSpec agent_template(const JobRequest& request, const JobFacts& facts) {
  const auto& settings = request.settings;
  const bool feeds = settings.get(knobs::kStdin) == StdinMode::rank0;
  return {
      .host = {},
      .command = request.command,
      .directory = request.directory,
      .common = {},
      .environment = {},
      .ranks = {},
      .own_variables = {},
      .stdin_policy = feeds ? StdinPolicy::rank0 : StdinPolicy::none,
      .bind_to = facts.bind_to,
      .gpus = facts.gpus,
      .failure_grace = settings.get(knobs::kFailureGrace),
      .grace = settings.get(knobs::kGrace),
      .release_timeout = settings.get(knobs::kReleaseTimeout),
      .secret = facts.secret,
      .timeline_directory = timeline_directory(request),
      .output_window = output_window(facts.elastic ? kElasticRanks : facts.placement.ranks.size()),
      .held = facts.elastic || facts.starts.uses_other_hosts(),
      .heartbeat = Duration::zero()};
}

std::vector<AgentSpec> make_agents(const JobRequest& request, const JobFacts& facts,
                                   const Environment& environment) {
  const auto identities = identify(facts);
  const auto here = std::make_shared<const Environment>(environment);
  const auto on_others = std::make_shared<const Environment>(for_another_host(environment));
  const auto common = agent_template(request, facts);
  const auto filter = filter_of(request);
  std::vector<AgentSpec> agents;
  for (std::size_t i = 0; i < facts.placement.hosts.size(); ++i) {
    const auto& host = facts.placement.hosts[i];
    const bool remote = facts.starts.hosts[i].method != StartMethod::local;
    auto& agent = agents.emplace_back(common);
    agent.host = host.name;
    agent.common = remote ? on_others : here;
    for (const auto rank : host.ranks) agent.ranks.push_back(identities[rank.index()]);
    agent.environment = slurm_node_variables(
        [&](const char* name) { return request.variable(name); }, host.name, facts.local[i]);
    std::erase_if(agent.environment,
                  [&filter](const auto& variable) { return !filter.passes(variable.first); });
    if (!remote) continue;
    agent.own_variables = host_variables();
    agent.heartbeat = request.settings.get(knobs::kHeartbeatTimeout);
  }
  return agents;
}

Result<MpiPlan> plan_mpi(const JobRequest& request, const JobFacts& facts,
                         const Environment& environment) {
  if (request.starter == RankStarter::jsrun)
    return plan_jsrun(request, *facts.mpi, facts.placement, environment);
  HORO_TRY(auto plan, plan_mpirun(request, *facts.mpi, facts.placement, environment, facts.cores));
  plan.here = facts.all_local();
  return plan;
}

}  // namespace

Result<JobPlan> plan_job(const JobRequest& request, JobFacts facts) {
  JobPlan plan;
  HORO_TRY(plan.output, choose_output(request, facts));
  plan.threads = choose_threads(request, facts);
  HORO_TRY(plan.common, common_variables(request, facts, plan.threads));
  const auto environment = rank_environment(request, plan.common);
  plan.agents = make_agents(request, facts, environment);
  if (facts.mpi) {
    HORO_TRY(plan.mpi, plan_mpi(request, facts, environment));
  }
  const auto here = std::find(facts.local.begin(), facts.local.end(), true);
  if (here != facts.local.end())
    plan.this_machine = static_cast<std::size_t>(here - facts.local.begin());
  plan.bind_to = facts.bind_to;
  plan.gpus = facts.gpus;
  plan.job_id = std::move(facts.job_id);
  plan.secret = facts.secret;
  plan.program = std::move(facts.program);
  plan.program_missing = std::move(facts.program_missing);
  plan.hosts_from = std::move(facts.hosts_from);
  plan.placement = std::move(facts.placement);
  plan.starts = std::move(facts.starts);
  plan.parts = std::move(facts.parts);
  plan.elastic = facts.elastic;
  plan.offered = std::move(facts.offered);
  plan.offer_may_change = facts.offer_may_change;
  plan.offer_pause = facts.offer_pause;
  return plan;
}

SavedPlan saved_plan_of(const JobPlan& plan) {
  const auto& agent = plan.agents.front();
  const auto word = [](const KnobText& text, auto value) {
    return std::string(text.choices.at(static_cast<std::size_t>(value)));
  };
  SavedPlan saved{.command = agent.command,
                  .directory = agent.directory,
                  .bind_to = word(knobs::kBindTo.text, agent.bind_to),
                  .gpus = word(knobs::kGpus.text, agent.gpus),
                  .hosts = {}};
  for (const auto& host : plan.placement.hosts) {
    auto& saved_host =
        saved.hosts.emplace_back(SavedHost{.name = host.name, .ranks = {}, .user = host.user});
    for (const auto rank : host.ranks) saved_host.ranks.push_back(rank.value());
  }
  return saved;
}

}  // namespace horo::launcher
