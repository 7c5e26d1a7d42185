// SPDX-License-Identifier: Apache-2.0
// The numbers of the descriptors that ranks inherit. The agent has them under the same numbers, so
// that a rank that has lost its own finds the agent's in /proc. They are above the numbers that
// shell scripts use by hand. They are also below the smallest usual limit, 64, by so much that a
// child has room above them while it moves descriptors to their places.
#pragma once

namespace horo::launcher {

inline constexpr int kBoardDescriptor = 56;
inline constexpr int kTimelineDescriptor = 57;

/// Occupies both numbers, so that nothing else that this process opens gets them before it has a
/// board and a timeline. Call it before this process opens anything.
void hold_rank_descriptors();

/// Takes board and timeline away from both numbers and occupies them again: the ranks that had them
/// are gone, and others may follow.
void clear_rank_descriptors();

}  // namespace horo::launcher
