// SPDX-License-Identifier: Apache-2.0
// How long the kernel lets a thread run before another's turn.
#pragma once

namespace horo::runtime {

/// Asks for the calling thread's turns to be as short as they get. It has no less time for that,
/// but goes before who has a long turn as soon as it is woken: ranks that share a core hand over
/// many times a millisecond, and whatever else runs there would keep it for four milliseconds each
/// time. Does nothing where the kernel cannot (Linux before 6.12), where the user has chosen
/// another way of scheduling, and while they are short already.
void take_short_turns();

/// Turns as they were before. A user's thread has them back when it leaves libhoro, since threads
/// and processes that it starts inherit them.
void give_turns_back();

}  // namespace horo::runtime
