// SPDX-License-Identifier: Apache-2.0
// One step of a training in a simulated world: all ranks submit all tensors at the same time.
#pragma once

#include <cstdint>

#include "runtime/simulator/world.hpp"

namespace horo::runtime::sim {

struct AgreementStep {
  Duration latency{};             ///< Until the last host has the last entry.
  std::uint64_t most_frames = 0;  ///< Frames sent by the busiest leader.
  std::uint64_t most_bytes = 0;   ///< By the busiest leader, with the length and tag of each frame.
};

/// Runs the world until every entry has been run. The first step declares the tensors.
AgreementStep run_agreement(World& world, int tensors);

}  // namespace horo::runtime::sim
