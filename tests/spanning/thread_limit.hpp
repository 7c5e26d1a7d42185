// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace horo::spanning {

/// How many more threads the calling thread may start; less than 0: any number. Further ones fail
/// as they do at the limit of processes of a user.
extern thread_local int threads_left;

}  // namespace horo::spanning
