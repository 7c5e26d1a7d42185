// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/agent/rank_set.hpp"

namespace horo::launcher {

/// In an agent that mpirun has started to own one rank: connects to the launcher, whose connection
/// becomes standard input and output, and says what the rank is to have of this process: its
/// environment, and the descriptor over which it speaks to the MPI's own daemon.
/// Blocks: until connected, 20 s at most. Fails: as knock and read_mpi_place; io.
Result<Inheritance> join_from_mpirun();

}  // namespace horo::launcher
