// SPDX-License-Identifier: Apache-2.0
// Starts a child: vfork, setup, exec. ProcessGroup uses it and adds pipes and waiting.
#pragma once

#include <sys/types.h>

#include "base/result.hpp"
#include "launcher/process/command.hpp"

namespace horo::launcher {

/// Starts `command` as leader of a new process group with exactly `descriptors` open, default
/// signal handling and an empty mask, and returns its pid; the caller reaps it. The child ends with
/// `command.parent_death_signal` when the calling thread ends. `command.descriptors` and `input`
/// are ignored. Fails, with nothing left behind: not_found (no such program or directory),
/// permission_denied (cannot be executed), unavailable (process or descriptor limit),
/// out_of_memory, io. Blocks: until the child has executed or failed.
Result<pid_t> spawn_process(const Command& command, const std::vector<Inherited>& descriptors);

/// Raises this process's soft limit of descriptors to the hard limit. Returns the limit that it had
/// before, for its children. Fails: io.
Result<rlimit> raise_descriptor_limit();

/// The environment of this process.
Environment own_environment();

/// The limit of descriptors that this process was started with, before raise_descriptor_limit.
rlimit first_descriptor_limit();

}  // namespace horo::launcher
