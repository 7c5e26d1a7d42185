// SPDX-License-Identifier: Apache-2.0
// The results of a simulated job on a described cluster: durations, bytes and messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/simulator/agreement_step.hpp"
#include "runtime/simulator/cluster/cluster.hpp"
#include "runtime/simulator/cluster/sim_store.hpp"

namespace horo::runtime::sim {

/// Frames of the protocol between launcher and agents, and their bytes without those of ssh.
struct FrameCounters {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
};

struct LaunchReport {
  std::vector<Duration> levels;  ///< By level of the tree: its last host has answered.
  Duration ranks{};              ///< All ranks run.
  FrameCounters sent;            ///< By the launcher.
  FrameCounters received;        ///< By the launcher.
  FrameCounters relayed;         ///< By the agent that relays most, in both directions.
  int most_children = 0;         ///< Agents that one process has started, at most.
  int most_logins = 0;           ///< Under way at a time at one ssh server, at most.
};

struct StartReport {
  Duration hosts_known{};      ///< All hosts have the table of hosts.
  Duration leaders{};          ///< All leaders are connected.
  Duration addresses_known{};  ///< All ranks know where all listen.
  Duration connected{};        ///< All ranks know that all have come: horo_init returns.
  StoreCounters store;
  std::size_t keys_left = 0;
};

struct SumReport {
  std::uint64_t bytes = 0;
  std::string path;       ///< "whole" or "by hosts".
  std::string algorithm;  ///< Between hosts.
  Duration first{};       ///< With the connections that it needs.
  Duration again{};
  std::uint64_t most_sent = 0;  ///< By the busiest host, the second time.
  Duration link{};              ///< The busiest link is occupied for so long, the second time.
  std::vector<Duration> ends;   ///< By host: when its ranks have the result, the second time.
  std::uint64_t messages = 0;   ///< The second time.
};

struct LossReport {
  HostFailure failure;
  Duration known{};  ///< Until the last survivor knows.
};

struct ClusterReport {
  std::optional<LaunchReport> launch;  ///< Where the launcher was simulated, too.
  StartReport start;
  AgreementStep first;
  AgreementStep cached;
  std::vector<SumReport> sums;
  std::vector<LossReport> losses;
  std::uint64_t connections = 0;       ///< Between ranks, of all sums.
  std::uint64_t most_connections = 0;  ///< One rank has so many, at most.
};

/// One row of JSON.
std::string to_json(const Cluster& cluster, const ClusterReport& report);

}  // namespace horo::runtime::sim
