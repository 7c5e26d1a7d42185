// SPDX-License-Identifier: Apache-2.0
// Closes the descriptors that a process has inherited. Also between a fork and exec: nothing here
// allocates or locks.
#pragma once

namespace horo {

/// Closes all descriptors from `first` on.
void close_descriptors(int first);

/// Has exec close all descriptors from `first` on.
void close_descriptors_at_exec(int first);

}  // namespace horo
