// SPDX-License-Identifier: Apache-2.0
#include "apps/run/plan.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "apps/run/environment.hpp"
#include "apps/run/horovod_names.hpp"
#include "apps/run/jsrun_plan.hpp"
#include "apps/run/mpi_plan.hpp"
#include "base/board_header.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/mpi_knobs.hpp"
#include "base/knobs/timeline_knobs.hpp"
#include "base/kv/auth.hpp"
#include "base/version.hpp"
#include "discovery/find_hosts.hpp"
#include "discovery/this_machine.hpp"
#include "launcher/agent/free_ports.hpp"

namespace horo::apps {

namespace {

// Ranks that are all on this machine meet over loopback.
constexpr std::string_view kAddress = "127.0.0.1";
constexpr std::size_t kMostAddressed = 1024;  // TF_CONFIG names every rank to every rank.
constexpr std::string_view kHorovodTag = "[{rank}]<{stream}>:";

/// As getenv.
const char* find_value(const char* const* environment, std::string_view name) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return *environment + name.size() + 1;
    }
  }
  return nullptr;
}

std::string_view value_of(const char* const* environment, std::string_view name) {
  const char* value = find_value(environment, name);
  return value == nullptr ? std::string_view{} : value;
}

Result<discovery::FoundHosts> find_hosts(const RunInvocation& invocation,
                                         const PlanContext& context) {
  const auto& options = invocation.options;
  const auto& settings = invocation.settings;
  const int per_host = settings.get(knobs::kRanksPerHost);
  std::optional<int> here = options.np;
  if (!here && per_host != 0) here = per_host;
  return discovery::find_hosts(
      {.list = options.hosts,
       .hostfile = options.hostfile,
       .script = options.script,
       .default_slots = per_host != 0 ? per_host : settings.get(knobs::kSlotsPerHost),
       .ranks_per_host = per_host,
       .here_slots = here,
       .patience = settings.get(knobs::kDiscoveryTimeout),
       .environment = [&](const char* name) { return find_value(context.environment, name); }});
}

discovery::HostSet without(const discovery::HostSet& hosts, const std::vector<std::string>& lost) {
  discovery::HostSet left;
  for (const auto& host : hosts.hosts()) {
    if (std::find(lost.begin(), lost.end(), host.name) == lost.end()) left.add(host);
  }
  return left;
}

Result<launcher::Placement> place_ranks(const RunInvocation& invocation,
                                        const discovery::FoundHosts& found,
                                        const std::vector<std::string>& lost) {
  const auto hosts = without(discovery::merge_this_machine(found.hosts), lost);
  const auto& settings = invocation.settings;
  launcher::PlacementPolicy policy{.np = 0,
                                   .map_by = settings.get(knobs::kMapBy),
                                   .ranks_per_host = settings.get(knobs::kRanksPerHost)};
  auto all = hosts.slots();
  if (policy.ranks_per_host != 0)
    all = static_cast<long long>(hosts.size()) * policy.ranks_per_host;
  if (!invocation.options.np && all > launcher::kMaxRanks) {
    return fail(Errc::invalid_argument, "the hosts have {} slots, at most {} ranks can be; add -np",
                all, launcher::kMaxRanks);
  }
  policy.np = invocation.options.np.value_or(static_cast<int>(all));
  return launcher::place(hosts, policy).context(found.source);
}

/// The ranks of a plan file. Fails: invalid_argument.
Result<launcher::Placement> placement_of(const RunInvocation& invocation, const PlanFile& file) {
  for (const auto* key : {"map.by", "ranks.per.host"}) {
    if (invocation.settings.origin(key).kind == OriginKind::flag) {
      return fail(Errc::invalid_argument,
                  "'{}' has no effect on a plan that is made already ('{}')", flag_name(key),
                  invocation.options.plan);
    }
  }
  std::vector<launcher::PlacedHost> hosts;
  discovery::HostSet names;
  for (const auto& planned : file.hosts) {
    if (planned.ranks.size() > static_cast<std::size_t>(kMaxLocalRanks)) {
      return fail(Errc::invalid_argument, "{}: {} ranks on host '{}'; at most {} fit on one host",
                  invocation.options.plan, planned.ranks.size(), planned.name, kMaxLocalRanks);
    }
    auto& host = hosts.emplace_back(
        launcher::PlacedHost{.name = planned.name, .ranks = {}, .user = planned.user});
    for (const int rank : planned.ranks) host.ranks.emplace_back(rank);
    names.add({.name = planned.name});
  }
  if (discovery::merge_this_machine(names).size() != names.size()) {
    return fail(Errc::invalid_argument, "{}: this machine is there under two names",
                invocation.options.plan);
  }
  return launcher::number_ranks(std::move(hosts));
}

/// `text` as a value of `knob`, as from a flag.
template <typename T>
Result<T> parse_choice(const Knob<T>& knob, const std::string& text) {
  HORO_TRY(const auto settings,
           Settings::resolve({.flags = {{flag_name(knob.text.key), text, {}}}}));
  return settings.get(knob);
}

/// What ranks get of their hosts: the plan file's word, where nothing was set.
template <typename T>
Result<T> wanted(const RunInvocation& invocation, const PlanContext& context, const Knob<T>& knob,
                 std::string PlanFile::*field) {
  if (!context.file || invocation.settings.is_set(knob.text.key))
    return invocation.settings.get(knob);
  return parse_choice(knob, *context.file.*field).context(invocation.options.plan);
}

bool all_here(const launcher::Placement& placement) {
  const discovery::OwnNames own;
  return std::all_of(placement.hosts.begin(), placement.hosts.end(),
                     [&](const auto& host) { return own.has(host.name); });
}

/// How the other hosts call it.
std::string address_of(const discovery::OwnNames& own, const std::string& host) {
  return own.has(host) ? discovery::machine_name() : host;
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
  const auto size = static_cast<int>(plan.placement.ranks.size());
  HORO_TRY(output.tag, choose_tag(invocation, size));
  output.timestamps = invocation.settings.get(knobs::kPrefixTimestamp);
  output.time_style =
      invocation.options.horovod ? launcher::TimeStyle::asctime : launcher::TimeStyle::iso;
  output.tagged_files = invocation.options.horovod;
  if (const auto list = invocation.settings.get(knobs::kOutputRanks); !list.empty()) {
    HORO_TRY(output.shown, launcher::parse_ranks(list, size));
  }
  // Who reads Horovod's format may count lines.
  if (const auto fold = invocation.settings.get(knobs::kFold);
      fold != FoldMode::automatic || invocation.options.horovod)
    output.fold = fold == FoldMode::on;
  output.cursor = value_of(context.environment, "TERM") != "dumb";
  output.colours = value_of(context.environment, "NO_COLOR").empty() &&
                   value_of(context.environment, "TERM") != "dumb";
  output.job_id = plan.job_id;
  return output;
}

/// host:port of every rank. The same ports on every host: only this machine's are known to be free.
WorkerAddresses addresses_of(const launcher::Placement& placement, const std::vector<int>& ports,
                             bool here) {
  if (placement.ranks.size() > kMostAddressed) return {};
  const discovery::OwnNames own;
  std::vector<std::string> hosts;
  for (const auto& host : placement.hosts)
    hosts.push_back(here ? std::string(kAddress) : address_of(own, host.name));
  std::vector<std::string> addresses;
  for (const auto& rank : placement.ranks)
    addresses.push_back(with_port(hosts[rank.host], ports[rank.local_rank.index() + 1]));
  return addresses;
}

/// Rank numbers and addresses, as far as they are known before the job starts.
Result<std::vector<WorkerIdentity>> identify(const Plan& plan) {
  const auto& placement = plan.placement;
  const bool here = all_here(placement);
  int most = 1;
  for (const auto& host : placement.hosts) most = std::max(most, host.count());
  HORO_TRY(const auto ports, launcher::free_ports(most + 1));
  const auto addresses = addresses_of(placement, ports, here);
  const auto master =
      here ? std::string(kAddress) : address_of({}, placement.host_of(Rank{0}).name);
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
                          .job_id = plan.job_id,
                          .rendezvous = {},
                          .master_address = master,
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
  if (!all_here(placement)) return 0;  // The cores of other hosts are not known here.
  int most = 1;
  for (const auto& host : placement.hosts) most = std::max(most, host.count());
  return most == 1 ? 0 : std::max(1, context.cores / most);
}

Result<std::vector<std::optional<launcher::HostParts>>> share_hosts(
    const PlanContext& context, const launcher::Placement& placement,
    launcher::PartsRequest request) {
  std::vector<std::optional<launcher::HostParts>> parts;
  const discovery::OwnNames own;
  for (const auto& host : placement.hosts) {
    parts.emplace_back();
    if (!own.has(host.name)) continue;
    request.ranks = host.count();
    if (const char* visible = find_value(context.environment, "CUDA_VISIBLE_DEVICES"))
      request.visible_gpus = visible;
    auto shared = launcher::share_this_machine(request);
    if (!shared)
      return Failure(std::move(shared).error().context(fmt::format("host '{}'", host.name)));
    parts.back() = std::move(*shared);
  }
  return parts;
}

Result<launcher::Placement> decide_places(const RunInvocation& invocation,
                                          const PlanContext& context, Plan& plan) {
  if (context.file) {
    plan.hosts_from = fmt::format("plan file '{}': it was given", invocation.options.plan);
    return placement_of(invocation, *context.file);
  }
  HORO_TRY(const auto found, find_hosts(invocation, context));
  plan.hosts_from = fmt::format("{}: {}", found.source, found.why);
  return place_ranks(invocation, found, context.lost);
}

/// Where agents save timelines; empty: each in a folder of its host.
std::string timeline_directory(const Settings& settings, const PlanContext& context) {
  auto path = settings.get(knobs::kTimelineDirectory);
  if (path.empty()) path = settings.get(knobs::kOutputFilename);
  if (path.empty() || path.front() == '/') return path;
  return fmt::format("{}/{}", context.directory, path);
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
  HORO_TRY(plan.placement, decide_places(invocation, context, plan));
  HORO_TRY(auto bind_to, wanted(invocation, context, knobs::kBindTo, &PlanFile::bind_to));
  HORO_TRY(const auto gpus, wanted(invocation, context, knobs::kGpus, &PlanFile::gpus));
  // mpirun and jsrun bind their ranks by themselves; unless we are asked to.
  const bool by_mpi = options.mpi || options.jsrun;
  if (by_mpi && bind_to == BindTo::automatic) bind_to = BindTo::none;
  plan.bind_to = bind_to;
  plan.gpus = gpus;
  HORO_TRY(plan.parts, share_hosts(context, plan.placement, {.bind_to = bind_to, .gpus = gpus}));
  HORO_TRY(const auto random, kv::make_secret());
  plan.job_id = make_job_id(random);
  HORO_TRY(plan.output, choose_output(invocation, context, plan));
  HORO_TRY(const auto identities, identify(plan));
  HORO_TRY(const auto secret, kv::make_secret());
  plan.common = invocation.settings.exported();
  HORO_TRY(const auto network, network_variables(invocation.settings));
  plan.common.insert(plan.common.end(), network.begin(), network.end());
  for (const auto* name : {"HORO_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"})
    plan.common.emplace_back(name, std::to_string(context.attempt));
  // Without it torch's Gloo listens where this machine's name leads, which may be nowhere.
  if (const auto loopback = loopback_interface();
      !loopback.empty() && all_here(plan.placement) &&
      invocation.settings.get(knobs::kNetworkInterfaces).empty() &&
      value_of(context.environment, "GLOO_SOCKET_IFNAME").empty()) {
    plan.common.emplace_back("GLOO_SOCKET_IFNAME", loopback);
  }
  if (options.horovod) {
    const auto path = horovod_python_path(value_of(context.environment, "PYTHONPATH"));
    if (!path.empty()) plan.common.emplace_back("PYTHONPATH", path);
  }
  if (by_mpi) {
    // Who reads them: what the ranks' MPI says counts, and not what this launcher has planned.
    for (const auto* name : {"HORO_CONTROLLER", "HOROVOD_CONTROLLER"})
      plan.common.emplace_back(name, "mpi");
    plan.ways.hosts.resize(plan.placement.hosts.size());  // It knows how to reach them.
  } else {
    HORO_TRY(plan.ways, choose_ways(plan.placement, invocation.settings, [&](const char* name) {
               return find_value(context.environment, name);
             }));
  }
  const bool several = plan.ways.leave_this_machine();
  plan.threads = choose_threads(context, plan.placement);
  if (plan.threads != 0) {
    plan.common.emplace_back("OMP_NUM_THREADS", std::to_string(plan.threads));
  }
  const EnvironmentFilter filter{invocation.settings.get(knobs::kEnvAllow),
                                 invocation.settings.get(knobs::kEnvDeny)};
  auto environment = inherited_environment(context.environment, plan.common, filter);
  environment.insert(environment.end(), plan.common.begin(), plan.common.end());
  const auto here = std::make_shared<const Environment>(environment);
  const auto elsewhere = std::make_shared<const Environment>(for_another_host(environment));
  const auto stdin_mode = invocation.settings.get(knobs::kStdin);
  for (std::size_t i = 0; i < plan.placement.hosts.size(); ++i) {
    const auto& host = plan.placement.hosts[i];
    const bool remote = plan.ways.hosts[i].way != Way::local;
    std::vector<WorkerIdentity> ranks;
    for (const auto rank : host.ranks) ranks.push_back(identities[rank.index()]);
    plan.agents.push_back({.host = host.name,
                           .command = options.command,
                           .directory = context.directory,
                           .common = remote ? elsewhere : here,
                           .ranks = std::move(ranks),
                           .own_variables = remote ? own_variables() : std::vector<std::string>(),
                           .stdin_policy = stdin_mode == StdinMode::rank0
                                               ? launcher::StdinPolicy::rank0
                                               : launcher::StdinPolicy::none,
                           .bind_to = bind_to,
                           .gpus = gpus,
                           .failure_grace = invocation.settings.get(knobs::kFailureGrace),
                           .grace = invocation.settings.get(knobs::kGrace),
                           .secret = secret,
                           .timeline_directory = timeline_directory(invocation.settings, context),
                           .output_window = launcher::output_window(identities.size()),
                           .held = several,
                           .heartbeat = remote ? invocation.settings.get(knobs::kHeartbeatTimeout)
                                               : Duration::zero()});
  }
  if (options.mpi) {
    HORO_TRY(plan.mpi, plan_mpirun(invocation, plan, environment, context.cores));
  } else if (options.jsrun) {
    HORO_TRY(plan.mpi, plan_jsrun(invocation, plan, environment, [&](const char* name) {
               return find_value(context.environment, name);
             }));
  }
  return plan;
}

PlanFile file_of(const Plan& plan) {
  const auto& agent = plan.agents.front();
  const auto word = [](const KnobText& text, auto value) {
    return std::string(text.choices.at(static_cast<std::size_t>(value)));
  };
  PlanFile file{.command = agent.command,
                .directory = agent.directory,
                .bind_to = word(knobs::kBindTo.text, agent.bind_to),
                .gpus = word(knobs::kGpus.text, agent.gpus),
                .hosts = {}};
  for (const auto& host : plan.placement.hosts) {
    auto& planned =
        file.hosts.emplace_back(PlannedHost{.name = host.name, .ranks = {}, .user = host.user});
    for (const auto rank : host.ranks) planned.ranks.push_back(rank.value());
  }
  return file;
}

}  // namespace horo::apps
