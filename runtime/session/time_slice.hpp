// SPDX-License-Identifier: Apache-2.0
// How long the kernel lets a thread run before another thread's turn.
#pragma once

namespace horo::runtime {

/// Asks for the shortest turns for the calling thread. The thread gets as much time as before, but
/// runs before threads with long turns as soon as it is woken. Ranks that share a core hand over
/// many times a millisecond, and another program on that core would keep it for four milliseconds
/// each time. Does nothing where the kernel cannot (Linux before 6.12), where the user has chosen
/// another scheduling policy, and while the turns are short already.
void take_short_turns();

/// Restores the turns of the calling thread. A user's thread gets its own turns back when it leaves
/// libhoro, because threads and processes that it starts inherit them.
void give_turns_back();

}  // namespace horo::runtime
