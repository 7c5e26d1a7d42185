// SPDX-License-Identifier: Apache-2.0
// How long a step of a training takes on a described cluster, for values that can be tuned.
//
// The leaders agree on the tensors by their real code, as they appear, on the virtual network. What
// an entry of the log costs is taken from simulated sums of such sizes, which run the real
// algorithms on the same links. An entry's transfer waits for that of the entry before it, but not
// its latency, because two entries are in flight.
#pragma once

#include <cstdint>
#include <map>

#include "runtime/simulator/cluster/cluster_run.hpp"

namespace horo::runtime::sim {

struct TunedValues {
  std::uint64_t fusion_threshold = 64 << 20;  ///< In bytes.
  Duration cycle{};                           ///< How long an entry waits for more tensors.
};

struct StepPrediction {
  Duration step{};
  std::uint64_t entries = 0;  ///< Sums, after fusion.
};

/// Thread: owner. The cluster has at least two hosts and describes a training.
class StepPredictor {
 public:
  explicit StepPredictor(const Cluster& cluster);

  /// A step after those in which names are agreed on. Blocks: for the time that the simulation
  /// takes, up to seconds for a thousand ranks.
  StepPrediction predict(const TunedValues& values);

  /// How long one sum of so many bytes takes when nothing else is in flight.
  Duration sum_time(std::uint64_t bytes);

 private:
  Duration simulated_sum(std::uint64_t bytes);

  const Cluster cluster_;
  ClusterRun sums_;
  std::map<std::uint64_t, Duration> times_;  ///< By bytes.
};

}  // namespace horo::runtime::sim
