// SPDX-License-Identifier: Apache-2.0
// Everything that horo discover finds, as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "discovery/amd_gpus.hpp"
#include "discovery/network_interfaces.hpp"
#include "discovery/nvml/gpu_list.hpp"
#include "discovery/search/find_hosts.hpp"
#include "discovery/topology/machine_topology.hpp"

namespace horo::apps {

struct SurveyedHost {
  discovery::Host host;
  bool here = false;                      ///< Whether it is this machine.
  std::optional<discovery::Route> route;  ///< The route from this machine, if there is one.
  std::string problem;  ///< Why there is no route; empty if there is one or none is needed.
};

struct SharedMemory {
  std::uint64_t free = 0;  ///< Bytes.
  std::uint64_t total = 0;
};

struct Survey {
  std::string source;  ///< The source of the hosts.
  std::string why;     ///< The reason for that source.
  std::vector<SurveyedHost> hosts;
  std::string machine;  ///< This machine's name.
  std::optional<discovery::Topology> topology;
  std::string topology_problem;            ///< Why the topology could not be read.
  std::optional<discovery::GpuList> gpus;  ///< Nothing: the driver's library says why not.
  std::string gpu_problem;
  std::vector<discovery::AmdGpu> amd_gpus;
  std::vector<discovery::Interface> interfaces;
  std::optional<SharedMemory> shared_memory;  ///< Size of /dev/shm; nothing if it does not exist.

  /// Whether every host has a route and this machine could be read.
  bool whole() const;
};

/// Blocks: for files, programs and the name service. Fails: as find_hosts.
Result<Survey> survey(const discovery::HostRequest& request);

std::string survey_text(const Survey& survey);
std::string survey_json(const Survey& survey);

}  // namespace horo::apps
