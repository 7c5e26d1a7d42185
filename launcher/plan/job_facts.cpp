// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/job_facts.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "base/board_header.hpp"
#include "base/knobs/elastic_knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "discovery/repeated_hosts.hpp"
#include "discovery/this_machine.hpp"
#include "launcher/plan/find_program.hpp"
#include "launcher/plan/jsrun_plan.hpp"
#include "launcher/plan/start_probe.hpp"
#include "launcher/protocol/free_ports.hpp"

namespace horo::launcher {

namespace {

/// The command has a word that a user may have meant for `horo run`.
bool has_np(const std::vector<std::string>& command) {
  return std::any_of(command.begin(), command.end(),
                     [](const std::string& word) { return word == "-np" || word == "--np"; });
}

Result<discovery::FoundHosts> find_hosts(const JobRequest& request, discovery::NoHosts no_hosts) {
  const auto& settings = request.settings;
  const int per_host = settings.get(knobs::kRanksPerHost);
  std::optional<int> here = request.np;
  if (!here && per_host != 0) here = per_host;
  auto found = discovery::find_hosts(
      {.list = request.hosts,
       .hostfile = request.hostfile,
       .script = request.script,
       .default_slots = per_host != 0 ? per_host : settings.get(knobs::kSlotsPerHost),
       .ranks_per_host = per_host,
       .here_slots = here,
       .no_hosts = no_hosts,
       .timeout = settings.get(knobs::kDiscoveryTimeout),
       .cancel = request.cancel,
       .environment = [&](const char* name) { return request.variable(name); }});
  if (found || here || !has_np(request.command)) return found;
  return fail(found.error().code, "{} before the command; behind it, -np is an option of {}",
              found.error().message, request.command.front());
}

discovery::HostSet without(const discovery::HostSet& hosts,
                           const std::vector<std::string>& avoided) {
  discovery::HostSet left;
  for (const auto& host : hosts.hosts()) {
    if (std::find(avoided.begin(), avoided.end(), host.name) == avoided.end()) left.add(host);
  }
  return left;
}

/// The hosts of a saved plan, with their ranks.
std::vector<PlacedHost> placed_hosts(const SavedPlan& plan) {
  std::vector<PlacedHost> hosts;
  for (const auto& saved : plan.hosts) {
    auto& host =
        hosts.emplace_back(PlacedHost{.name = saved.name, .ranks = {}, .user = saved.user});
    for (const int rank : saved.ranks) host.ranks.emplace_back(rank);
  }
  return hosts;
}

Result<Placement> placement_of(const JobRequest& request) {
  const auto& path = request.saved_plan_path;
  for (const auto* key : {"map.by", "ranks.per.host"}) {
    if (request.settings.origin(key).kind == OriginKind::flag) {
      return fail(Errc::invalid_argument,
                  "--{} has no effect on a saved plan ('{}'); leave it out, or make a new plan "
                  "with --plan-out",
                  flag_name(key), path);
    }
  }
  auto hosts = placed_hosts(*request.saved_plan);
  for (const auto& host : hosts) {
    if (host.count() > kMaxLocalRanks) {
      return fail(Errc::invalid_argument, "{}: {} ranks on host '{}'; at most {} fit on one host",
                  path, host.count(), host.name, kMaxLocalRanks);
    }
  }
  return number_ranks(std::move(hosts));
}

/// A saved plan may name this machine once.
Status check_own_names(const JobRequest& request) {
  discovery::HostSet names;
  for (const auto& host : request.saved_plan->hosts) names.add({.name = host.name});
  if (discovery::merge_this_machine(names).size() == names.size()) return {};
  return fail(Errc::invalid_argument, "{}: two of the plan's hosts are this machine",
              request.saved_plan_path);
}

/// `text` as a value of `knob`, read as from a flag.
template <typename T>
Result<T> parse_choice(const Knob<T>& knob, const std::string& text) {
  HORO_TRY(const auto settings,
           Settings::resolve({.flags = {{flag_name(knob.text.key), text, {}}}}));
  return settings.get(knob);
}

/// The value of a setting if the user has set it, else that of the saved plan, if there is one.
template <typename T>
Result<T> setting_or_saved(const JobRequest& request, const Knob<T>& knob,
                           std::string SavedPlan::*field) {
  if (!request.saved_plan || request.settings.is_set(knob.text.key))
    return request.settings.get(knob);
  return parse_choice(knob, *request.saved_plan.*field).context(request.saved_plan_path);
}

Status choose_binding(const JobRequest& request, JobFacts& facts) {
  HORO_TRY(facts.bind_to, setting_or_saved(request, knobs::kBindTo, &SavedPlan::bind_to));
  HORO_TRY(facts.gpus, setting_or_saved(request, knobs::kGpus, &SavedPlan::gpus));
  // mpirun and jsrun bind their ranks themselves, unless the user asks for our binding.
  const bool by_agents = request.starter == RankStarter::agents;
  if (!by_agents && facts.bind_to == BindTo::automatic) facts.bind_to = BindTo::none;
  return {};
}

Status share_hosts(const JobRequest& request, JobFacts& facts) {
  PartsRequest parts{.bind_to = facts.bind_to, .gpus = facts.gpus, .ranks = 1, .visible = {}};
  parts.visible = GpuVariables::of([&](const char* name) { return request.variable(name); });
  for (std::size_t i = 0; i < facts.placement.hosts.size(); ++i) {
    const auto& host = facts.placement.hosts[i];
    auto& part = facts.parts.emplace_back();
    if (!facts.local[i]) continue;
    parts.ranks = host.count();
    auto shared = share_this_machine(parts);
    if (!shared)
      return Failure(std::move(shared).error().context(fmt::format("host '{}'", host.name)));
    part = std::move(*shared);
  }
  return {};
}

/// An elastic job is planned for as many ranks as there are slots now; there may be none.
Status choose_elastic_places(const JobRequest& request, JobFacts& facts) {
  auto all = request;
  if (request.joining) {
    facts.offered = request.joining->hosts;
    facts.hosts_from = "hosts that joined";
  } else {
    HORO_TRY(auto found, offered_hosts(request));
    facts.hosts_from = fmt::format("{}: {}", found.source, found.why);
    facts.offered = std::move(found.hosts);
    facts.offer_may_change = found.may_change;
    facts.offer_pause = found.pause;
  }
  const auto most = request.joining ? kMaxRanks : facts.elastic->most;
  all.np = static_cast<int>(std::min<long long>(facts.offered.slots(), most));
  if (*all.np == 0) return {};
  HORO_TRY(facts.placement, place_ranks(all, facts.offered, facts.hosts_from));
  return {};
}

Status choose_places(const JobRequest& request, JobFacts& facts) {
  if (request.saved_plan) {
    facts.hosts_from = fmt::format("plan file '{}': it was given", request.saved_plan_path);
    HORO_TRY_STATUS(check_own_names(request));
    HORO_TRY(facts.placement, placement_of(request));
    return {};
  }
  if (facts.elastic) return choose_elastic_places(request, facts);
  HORO_TRY(const auto found, find_hosts(request, discovery::NoHosts::refused));
  facts.hosts_from = fmt::format("{}: {}", found.source, found.why);
  const auto hosts = without(discovery::merge_this_machine(found.hosts), request.avoided_hosts);
  HORO_TRY(facts.placement, place_ranks(request, hosts, found.source));
  return {};
}

void name_hosts(JobFacts& facts) {
  const discovery::OwnNames own;
  facts.machine_name = discovery::machine_name();
  for (const auto& host : facts.placement.hosts) facts.local.push_back(own.has(host.name));
}

Status draw_secrets(const JobRequest& request, JobFacts& facts) {
  if (request.joining) {
    facts.job_id = request.joining->job_id;
    facts.secret = request.joining->secret;
    return {};
  }
  HORO_TRY(const auto random, kv::make_secret());
  for (std::size_t i = 0; i < 6; ++i) facts.job_id += fmt::format("{:02x}", random[i]);
  HORO_TRY(facts.secret, kv::make_secret());
  return {};
}

void look_for_program(const JobRequest& request, JobFacts& facts) {
  const auto& word = request.command.front();
  // A saved plan's relative path starts from its working directory.
  const bool moves = request.saved_plan && word.find('/') != std::string::npos && word[0] != '/';
  auto program = find_program(moves ? fmt::format("{}/{}", request.directory, word) : word,
                              request.variable("PATH"));
  facts.program = program ? *program : word;
  if (!program) facts.program_missing = std::move(program).error();
}

Status ask_starters(const JobRequest& request, JobFacts& facts) {
  switch (request.starter) {
    case RankStarter::agents: {
      HORO_TRY(facts.starts,
               probe_starts(
                   facts.placement, request.settings,
                   [&](const char* name) { return request.variable(name); }, request.cancel));
      // The loss of a host must not cut off others, so none is reached through another one.
      if (facts.elastic) {
        auto& parents = facts.starts.tree.parents;
        parents.assign(parents.size(), std::nullopt);
        facts.starts.tree.levels = std::min(facts.starts.tree.levels, 1);
      }
      return {};
    }
    case RankStarter::mpirun: {
      HORO_TRY(facts.mpi, probe_mpirun(request, facts.placement));
      break;
    }
    case RankStarter::jsrun: {
      HORO_TRY(facts.mpi, probe_jsrun(request, facts.placement));
      break;
    }
  }
  // mpirun and jsrun know how to reach the hosts.
  facts.starts.hosts.resize(facts.placement.hosts.size());
  return {};
}

}  // namespace

bool JobFacts::all_local() const {
  return std::all_of(local.begin(), local.end(), [](bool here) { return here; });
}

Result<Placement> place_ranks(const JobRequest& request, const discovery::HostSet& listed,
                              const std::string& hosts_from) {
  discovery::HostSet hosts;
  for (const auto& host : listed.hosts()) {
    if (host.slots > 0) hosts.add(host);
  }
  if (hosts.empty() && !listed.empty()) {
    return fail(Errc::invalid_argument,
                "{}: no host has a slot ({}); give at least one of them a number of slots",
                hosts_from, describe(listed));
  }
  const auto& settings = request.settings;
  PlacementPolicy policy{.np = 0,
                         .map_by = settings.get(knobs::kMapBy),
                         .ranks_per_host = settings.get(knobs::kRanksPerHost)};
  auto all = hosts.slots();
  if (policy.ranks_per_host != 0)
    all = static_cast<long long>(hosts.size()) * policy.ranks_per_host;
  if (!request.np && all > kMaxRanks) {
    return fail(Errc::invalid_argument,
                "the hosts have {} slots, but a job has at most {} ranks; give a number with -np",
                all, kMaxRanks);
  }
  policy.np = request.np.value_or(static_cast<int>(all));
  return place(hosts, policy).context(hosts_from);
}

Result<discovery::FoundHosts> offered_hosts(const JobRequest& request) {
  auto listing = request;
  // Without any source of hosts, this machine has a slot for every rank that the job may have.
  HORO_TRY(const auto size, elastic_size(request));
  if (size)
    listing.np = (size->limited ? size->most : size->np) + request.settings.get(knobs::kSpares);
  HORO_TRY(auto found, find_hosts(listing, discovery::NoHosts::allowed));
  discovery::HostSet hosts;
  const auto merged = discovery::merge_this_machine(found.hosts);
  if (size && found.may_change) {
    const discovery::RepeatLimits limits{
        .own_cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
        .ranks = size->np,
        .ranks_are_limited = size->limited};
    HORO_TRY_STATUS(discovery::check_repeated_hosts(merged, limits).context(found.source));
  }
  for (auto host : merged.hosts()) {
    host.slots = std::min(host.slots, kMaxLocalRanks);
    hosts.add(host);
  }
  found.hosts = std::move(hosts);
  return found;
}

Result<JobFacts> probe_job(const JobRequest& request) {
  JobFacts facts;
  HORO_TRY(facts.elastic, elastic_size(request));
  HORO_TRY_STATUS(choose_places(request, facts));
  name_hosts(facts);
  HORO_TRY_STATUS(choose_binding(request, facts));
  HORO_TRY_STATUS(share_hosts(request, facts));
  facts.cores = discovery::usable_cores();
  facts.loopback_interface = loopback_interface();
  HORO_TRY_STATUS(draw_secrets(request, facts));
  int most = 1;
  for (const auto& host : facts.placement.hosts) most = std::max(most, host.count());
  HORO_TRY(facts.ports, free_ports(most + 1));
  look_for_program(request, facts);
  HORO_TRY_STATUS(ask_starters(request, facts));
  return facts;
}

}  // namespace horo::launcher
