// SPDX-License-Identifier: Apache-2.0
// The numbers of the descriptors that ranks inherit. The agent has them under the same numbers, so
// that a rank that has lost its own finds the agent's in /proc. They are above the numbers that
// shell scripts use by hand. They are also below the smallest usual limit, 64, by so much that a
// child has room above them while it moves descriptors to their places.
#pragma once

#include <vector>

#include "base/result.hpp"

namespace horo::launcher {

inline constexpr int kBoardDescriptor = 56;
inline constexpr int kTimelineDescriptor = 57;

/// Occupies both numbers, so that nothing else that this process opens gets them before it has a
/// board and a timeline. Call it before this process opens anything. `in_use`: inherited
/// descriptors that the ranks need. Fails: unavailable (one of them has such a number, or the
/// descriptor limit is too low), io.
Status hold_rank_descriptors(const std::vector<int>& in_use);

/// Takes board and timeline away from both numbers and occupies them again: the ranks that had them
/// are gone, and others may follow.
void clear_rank_descriptors();

}  // namespace horo::launcher
