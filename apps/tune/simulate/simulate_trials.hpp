// SPDX-License-Identifier: Apache-2.0
// A search on a cluster that is only described: a simulator predicts a step of the training for
// each setting. Pure, and the same on every machine.
#pragma once

#include "apps/tune/record/tune_record.hpp"
#include "apps/tune/trials/trial_space.hpp"
#include "runtime/simulator/cluster/cluster.hpp"

namespace horo::apps {

/// The result of a simulated search.
struct SimulatedSearch {
  TuneRecord record;
  std::optional<SettingWords> keep;  ///< Unset: the default stays.
};

/// Searches fusion threshold and cycle time. `source`: the file of the cluster. Fails:
/// invalid_argument (one host, or no training is described). Blocks: for the simulations.
Result<SimulatedSearch> simulate_trials(const runtime::sim::Cluster& cluster,
                                        const std::string& source);

}  // namespace horo::apps
