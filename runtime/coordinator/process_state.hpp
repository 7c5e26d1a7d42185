// SPDX-License-Identifier: Apache-2.0
// What the kernel says a process does.
#pragma once

#include <cstdint>
#include <string_view>

namespace horo::runtime {

enum class ProcessState {
  running,
  sleeping,
  blocked,  ///< "D": waits in the kernel for a device, and no signal ends that.
  stopped,  ///< By SIGSTOP, SIGTSTP and their like.
  traced,   ///< Held by a debugger.
  gone,     ///< Ended, reaped or not.
  unknown,  ///< /proc does not tell.
};

/// From the text of /proc/PID/stat. Pure.
ProcessState parse_process_state(std::string_view stat);

/// Of the process's main thread. Blocks: no.
ProcessState process_state(std::uint32_t pid);

}  // namespace horo::runtime
