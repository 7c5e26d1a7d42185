// SPDX-License-Identifier: Apache-2.0
// A described cluster: hosts and their ranks, links, and failures at times.
// apps/common/cluster_file reads it from a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "runtime/simulator/network.hpp"

namespace horo::runtime::sim {

/// Hosts that are alike.
struct HostGroup {
  int count = 1;
  int ranks = 1;  ///< On each host.
  Uplink link;
};

struct HostFailure {
  enum class How { dies, is_cut, stops };

  Duration at{};  ///< After the sums.
  int host = 0;
  How how = How::dies;
};

std::string_view name(HostFailure::How how);

/// A gradient of the training.
struct StepTensor {
  std::uint64_t bytes = 0;
  Duration at{};  ///< When all ranks have it, from the beginning of the step.
};

/// A step of a training, as each rank computes it.
struct TrainingStep {
  Duration compute{};               ///< Without communication.
  std::vector<StepTensor> tensors;  ///< By time. Empty: no training is described.

  std::uint64_t bytes() const;
};

/// How the launcher starts the agents and ranks of the hosts.
struct LaunchModel {
  int fanout = 32;
  bool jump_host = false;  ///< All logins go through one ssh server.
  /// Time of a login at the other host: its ssh server, the shell and the start of the agent.
  Duration login = std::chrono::milliseconds(20);
  /// Processor time of a login where it comes from. One thread makes all logins of a process.
  Duration login_cost = std::chrono::milliseconds(4);
  Duration spawn = std::chrono::microseconds(500);  ///< To start one process.
  int environment_bytes = 4096;
};

struct Cluster {
  std::vector<HostGroup> groups;
  Uplink inside{.latency = std::chrono::microseconds(1), .bytes_per_second = 10e9};
  Duration jitter{};
  int radix = 16;
  Duration heartbeat_timeout = std::chrono::seconds(5);
  int tensors = 161;
  std::vector<std::uint64_t> sums = {4, 1U << 20U};  ///< Bytes.
  std::vector<HostFailure> failures;
  TrainingStep training;
  LaunchModel launch;
  std::uint64_t seed = 1;

  int hosts() const;
  int ranks() const;
};

std::string address_of(int host);

/// A port of a rank that its system could have chosen.
std::uint16_t port_of(int rank);

}  // namespace horo::runtime::sim
