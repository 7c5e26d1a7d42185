// SPDX-License-Identifier: Apache-2.0
// The ranks of one host wait for each other before they use their board.
#pragma once

#include "base/result.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/sets/rank_loss.hpp"
#include "runtime/sets/start_clock.hpp"

namespace horo::runtime {

/// Says that this rank has attached, and waits for the host's other ranks. Blocks: until all have,
/// as long as `start` says at most, which begins again after the whole job was stopped. Fails:
/// unavailable (a rank with this number has attached before), peer_lost (also when a rank ended
/// before it attached), timed_out (naming the ranks that are missing).
Status await_local_ranks(HostMemory& host, const bootstrap::Meeting& meeting, const RankLoss& loss,
                         StartClock& start);

}  // namespace horo::runtime
