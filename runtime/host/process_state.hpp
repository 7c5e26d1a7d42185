// SPDX-License-Identifier: Apache-2.0
// What a process does right now, according to the kernel.
#pragma once

#include <cstdint>
#include <string_view>

namespace horo::runtime {

enum class ProcessState {
  running,
  sleeping,
  blocked,  ///< "D": waits in the kernel for a device; signals do not end that.
  stopped,  ///< By SIGSTOP, SIGTSTP or a similar signal.
  traced,   ///< Held by a debugger.
  gone,     ///< Ended, reaped or not.
  unknown,  ///< /proc does not say.
};

/// Reads the text of /proc/PID/stat. Pure.
ProcessState parse_process_state(std::string_view stat);

/// The state of the process's main thread. Blocks: no.
ProcessState process_state(std::uint32_t pid);

}  // namespace horo::runtime
