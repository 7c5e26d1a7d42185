// SPDX-License-Identifier: Apache-2.0
// The simulated hosts and links of a described cluster.
#pragma once

#include "runtime/simulator/cluster/cluster.hpp"
#include "runtime/simulator/world.hpp"

namespace horo::runtime::sim {

/// Ranks are numbered from host to host.
WorldParams params_of(const Cluster& cluster);

/// A world of params_of() uses them from Network::use() on.
ClusterLinks links_of(const Cluster& cluster);

}  // namespace horo::runtime::sim
