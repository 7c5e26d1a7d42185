// SPDX-License-Identifier: Apache-2.0
// All that horo discover finds out, as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "discovery/find_hosts.hpp"
#include "discovery/network.hpp"
#include "discovery/topology/topology.hpp"

namespace horo::apps {

struct SurveyedHost {
  discovery::Host host;
  bool here = false;                      ///< It is this machine.
  std::optional<discovery::Route> route;  ///< From here, if there is one.
  std::string problem;                    ///< Why there is none; empty: there is, or it is here.
};

struct SharedMemory {
  std::uint64_t free = 0;  ///< Bytes.
  std::uint64_t total = 0;
};

struct Survey {
  std::string source;  ///< Who named the hosts.
  std::string why;     ///< Why that one.
  std::vector<SurveyedHost> hosts;
  std::string machine;  ///< This machine's name.
  std::optional<discovery::Topology> topology;
  std::string topology_problem;  ///< Why there is none.
  std::vector<discovery::Interface> interfaces;
  std::optional<SharedMemory> shared_memory;  ///< Of /dev/shm; nothing: it is not there.

  /// No host lacks a route, and this machine could be read.
  bool whole() const;
};

/// Blocks: for files, programs and the name service. Fails: as find_hosts.
Result<Survey> survey(const discovery::HostRequest& request);

std::string survey_text(const Survey& survey);
std::string survey_json(const Survey& survey);

}  // namespace horo::apps
