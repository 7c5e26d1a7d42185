// SPDX-License-Identifier: Apache-2.0
// The results of a simulated job on a described cluster: durations, bytes and messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/simulator/agreement_step.hpp"
#include "runtime/simulator/cluster/cluster.hpp"
#include "runtime/simulator/cluster/sim_store.hpp"

namespace horo::runtime::sim {

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
  std::uint64_t messages = 0;   ///< The second time.
};

struct LossReport {
  HostFailure failure;
  Duration known{};  ///< Until the last survivor knows.
};

struct ClusterReport {
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
