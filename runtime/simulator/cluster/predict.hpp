// SPDX-License-Identifier: Apache-2.0
// How long a step of a training takes on a described cluster, for values that can be tuned.
//
// The leaders agree on the tensors by their real code, as they appear, on the virtual network. What
// an entry of the log costs is taken from simulated sums of such sizes, which run the real
// algorithms on the same links, begun on each host when the entry has come there. Two entries are
// in flight, moved by different workers, so that the rounds of both overlap, but the bytes of one
// entry wait for those of the entry before it. No inputs travel with the agreement: that is for
// single sums, and a training has many tensors ready at once.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/simulator/cluster/cluster_run.hpp"

namespace horo::runtime::sim {

struct TunedValues {
  std::uint64_t fusion_threshold = 64 << 20;  ///< In bytes.
  Duration cycle{};                           ///< How long an entry waits for more tensors.
  std::uint64_t small_message = kUsualSmallMessage;
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

  struct SumTimes {
    /// By host: when its ranks have the result, from the moment at which the root begins, when
    /// nothing else is in flight. Other hosts begin when the entry has come to them.
    std::vector<Duration> ends;
    Duration link{};  ///< So long it occupies the busiest link.
  };

  /// Times of one sum of so many bytes, where one message more is worth `small_message` bytes. They
  /// are simulated for some sizes; between two of these that sum in the same way they are linear.
  SumTimes sum_times(std::uint64_t bytes, std::uint64_t small_message = kUsualSmallMessage);

  /// By host, how much later than at the root an entry of the log arrives.
  const std::vector<Duration>& delays() const { return delays_; }

 private:
  const SumTimes& simulated_sum(std::uint64_t bytes, std::uint64_t small_message);
  std::uint64_t last_of_way(std::uint64_t low, std::uint64_t high,
                            std::uint64_t small_message) const;

  const Cluster cluster_;
  const std::vector<Duration> delays_;
  ClusterRun sums_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, SumTimes> times_;  ///< By arguments.
};

}  // namespace horo::runtime::sim
