// SPDX-License-Identifier: Apache-2.0
#include "discovery/search/find_hosts.hpp"

#include "discovery/sources/hostfile.hpp"
#include "discovery/sources/kubernetes.hpp"
#include "discovery/sources/local.hpp"
#include "discovery/sources/lsf.hpp"
#include "discovery/sources/pbs.hpp"
#include "discovery/sources/script.hpp"
#include "discovery/sources/slurm.hpp"
#include "discovery/sources/slurm_queue.hpp"
#include "discovery/sources/static.hpp"

namespace horo::discovery {

namespace {

struct Chosen {
  std::unique_ptr<HostSource> source;
  std::string why;
  bool may_change = false;
  Duration pause = std::chrono::seconds(1);
};

/// An elastic job follows the job of Slurm, whose nodes may come and go, too.
Chosen choose_slurm(const HostRequest& request) {
  const std::string why = "SLURM_JOB_ID is set";
  const auto& environment = request.environment;
  if (request.no_hosts == NoHosts::allowed && can_ask_slurm(environment)) {
    return {std::make_unique<SlurmQueueSource>(environment, request.ranks_per_host), why, true,
            kSlurmPause};
  }
  return {std::make_unique<SlurmSource>(environment, request.ranks_per_host), why};
}

/// An elastic job follows the file of an LSF job that can be resized.
Chosen choose_lsf(const HostRequest& request) {
  const std::string why = "LSB_JOBID is set";
  const auto& environment = request.environment;
  const bool follows = request.no_hosts == NoHosts::allowed && LsfSource::can_follow(environment);
  const auto use = follows ? LsfSource::Use::follow : LsfSource::Use::once;
  return {std::make_unique<LsfSource>(environment, kCsmFolder, use), why, follows};
}

Chosen choose(const HostRequest& request) {
  const auto& environment = request.environment;
  const int slots = request.default_slots;
  if (!request.list.empty())
    return {std::make_unique<StaticSource>(request.list, slots), "it was given"};
  if (!request.hostfile.empty())
    return {std::make_unique<HostfileSource>(request.hostfile, slots, request.no_hosts),
            "it was given", true};
  if (!request.script.empty())
    return {std::make_unique<ScriptSource>(request.script, slots, request.no_hosts), "it was given",
            true};
  if (SlurmSource::is_here(environment)) return choose_slurm(request);
  if (LsfSource::is_here(environment)) return choose_lsf(request);
  // PBS rewrites its file when pbs_release_nodes takes nodes away, which an elastic job follows.
  if (PbsSource::is_here(environment))
    return {std::make_unique<PbsSource>(environment), "PBS_JOBID is set",
            request.no_hosts == NoHosts::allowed};
  if (KubernetesSource::is_here(environment)) {
    return {std::make_unique<KubernetesSource>(kMpiJobHostfile, request.no_hosts),
            "the MPI operator has mounted its host file", true};
  }
  return {
      nullptr,
      "no hosts are given, and horo does not run in a job of Slurm, LSF, PBS or the MPI operator"};
}

}  // namespace

Result<FoundHosts> find_hosts(const HostRequest& request) {
  auto chosen = choose(request);
  if (chosen.source == nullptr) {
    if (!request.here_slots)
      return fail(Errc::invalid_argument, "the number of ranks is not given; add -np N");
    chosen.source = std::make_unique<LocalSource>(*request.here_slots);
  }
  HORO_TRY(auto listing,
           chosen.source->list(
               {Deadline::in(SteadyClock::instance(), request.timeout), request.cancel}));
  FoundHosts found{.hosts = std::move(listing.hosts),
                   .source = std::string(chosen.source->name()),
                   .why = std::move(chosen.why),
                   .may_change = chosen.may_change,
                   .pause = chosen.pause};
  if (!listing.from.empty()) found.why += fmt::format("; {}", listing.from);
  return found;
}

}  // namespace horo::discovery
