// SPDX-License-Identifier: Apache-2.0
// Simulates how `horo run` starts the agents of a described cluster, level by level, and the ranks.
// Virtual time: the same on every machine.
//
// Real code: the plan of the tree, the limit of logins at a server, and all messages with the bytes
// that the protocol gives them. Modelled: links, the time that a login takes at each end, and the
// processors of launcher and agents, each of which has one thread.
#pragma once

#include "runtime/simulator/cluster/cluster.hpp"
#include "runtime/simulator/cluster/cluster_report.hpp"

namespace horo::apps {

/// The launcher runs on host 0, which therefore takes no part in the tree.
runtime::sim::LaunchReport simulate_launch(const runtime::sim::Cluster& cluster);

}  // namespace horo::apps
