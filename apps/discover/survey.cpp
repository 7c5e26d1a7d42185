// SPDX-License-Identifier: Apache-2.0
#include "apps/discover/survey.hpp"

#include <algorithm>
#include <sys/statvfs.h>

#include "discovery/this_machine.hpp"

namespace horo::apps {

namespace {

SurveyedHost look_at(const discovery::Host& host) {
  SurveyedHost found{
      .host = host, .here = discovery::is_this_machine(host.name), .route = {}, .problem = {}};
  if (found.here) return found;
  auto route = discovery::route_to(host.name);
  if (route) {
    found.route = std::move(*route);
  } else {
    found.problem = route.error().message;
  }
  return found;
}

std::optional<SharedMemory> shared_memory() {
  struct statvfs status {};

  if (statvfs("/dev/shm", &status) != 0) return {};
  return SharedMemory{.free = std::uint64_t{status.f_bavail} * status.f_frsize,
                      .total = std::uint64_t{status.f_blocks} * status.f_frsize};
}

}  // namespace

bool Survey::whole() const {
  return topology && std::all_of(hosts.begin(), hosts.end(),
                                 [](const SurveyedHost& host) { return host.problem.empty(); });
}

Result<Survey> survey(const discovery::HostRequest& request) {
  HORO_TRY(auto found, discovery::find_hosts(request));
  Survey result{.source = std::move(found.source), .why = std::move(found.why)};
  const auto hosts = discovery::merge_this_machine(found.hosts);
  for (const auto& host : hosts.hosts()) result.hosts.push_back(look_at(host));
  result.machine = discovery::machine_name();
  auto topology = discovery::read_topology(discovery::Detail::devices);
  if (topology) {
    result.topology = std::move(*topology);
  } else {
    result.topology_problem = topology.error().message;
  }
  auto gpus = discovery::list_gpus();
  if (gpus) {
    result.gpus = std::move(*gpus);
  } else {
    result.gpu_problem = gpus.error().message;
  }
  result.amd_gpus = discovery::amd_gpus();
  HORO_TRY(result.interfaces, discovery::list_interfaces());
  result.shared_memory = shared_memory();
  return result;
}

}  // namespace horo::apps
