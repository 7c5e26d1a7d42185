// SPDX-License-Identifier: Apache-2.0
// The numbers of descriptors that ranks inherit. The agent has them under the same ones, so that a
// rank that has lost its own finds the agent's under /proc. They are above those that shell scripts
// use by hand, and so far below the smallest usual limit, 64, that a rank's descriptors find room
// above them on their way to their places.
#pragma once

namespace horo::launcher {

inline constexpr int kBoardDescriptor = 56;
inline constexpr int kTimelineDescriptor = 57;

/// Keeps both numbers from whatever this process opens before it has a board and a timeline, such
/// as its connections to other hosts. To be called before it opens anything.
void hold_rank_descriptors();

}  // namespace horo::launcher
