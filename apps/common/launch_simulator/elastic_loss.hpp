// SPDX-License-Identifier: Apache-2.0
// Simulates how an elastic job on a described cluster loses a host and forms its next generation.
// Virtual time: the same on every machine.
//
// Real code: the leaders that tell each other of the loss, how an agent gathers the calls of its
// ranks, the membership machine of the launcher, the stores' tables, all messages with their bytes,
// and how ranks meet in a generation. Modelled: links, and the processors of the launcher, the
// agents and the leaders. What a rank does between the loss and its
// call takes no time. The ranks meet only when the last of them has its answer, so the whole takes
// no longer than the sum of its parts.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "runtime/simulator/cluster/cluster.hpp"

namespace horo::apps {

struct ElasticLossReport {
  runtime::sim::HostFailure failure;
  // Since the failure:
  Duration first_knows{};     ///< The first of the survivors and the launcher knows of the loss.
  Duration last_knows{};      ///< All hosts and the launcher know.
  Duration last_answered{};   ///< Every survivor has its new rank.
  Duration last_connected{};  ///< `horo_init` has returned on every survivor.
  /// Since the first survivor knows, in both directions. Launcher and store are on host 0.
  runtime::sim::Traffic of_launcher;
  runtime::sim::Traffic
      of_launcher_to_agree;              ///< The part of it until every survivor has its rank.
  runtime::sim::Traffic most_of_host;    ///< The busiest other host has so many.
  runtime::sim::Traffic median_of_host;  ///< Frames and bytes each by itself.
  Duration membership{};  ///< Processor time of this machine for the launcher's decisions.
};

/// Loses the host of the cluster's first failure, which is not host 0.
ElasticLossReport simulate_elastic_loss(const runtime::sim::Cluster& cluster);

/// One row of JSON.
std::string to_json(const runtime::sim::Cluster& cluster, const ElasticLossReport& report);

}  // namespace horo::apps
