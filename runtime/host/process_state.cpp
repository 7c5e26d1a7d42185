// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/process_state.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace horo::runtime {

ProcessState parse_process_state(std::string_view stat) {
  // "pid (name) S ...": the name may contain any character, even parentheses and spaces.
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= stat.size())
    return ProcessState::unknown;
  switch (stat[name_end + 2]) {
    case 'R':
      return ProcessState::running;
    case 'S':
    case 'I':
      return ProcessState::sleeping;
    case 'D':
      return ProcessState::blocked;
    case 'T':
      return ProcessState::stopped;
    case 't':
      return ProcessState::traced;
    case 'Z':
    case 'X':
    case 'x':
      return ProcessState::gone;
    default:
      return ProcessState::unknown;
  }
}

ProcessState process_state(std::uint32_t pid) {
  if (pid == 0) return ProcessState::unknown;
  const int fd = open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    // Where /proc hides other processes, a missing entry says nothing.
    return errno == ENOENT && access("/proc/1", F_OK) == 0 ? ProcessState::gone
                                                           : ProcessState::unknown;
  }
  std::array<char, 512> text{};
  const auto got = read(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  if (got < 0) return error == ESRCH ? ProcessState::gone : ProcessState::unknown;
  return parse_process_state({text.data(), static_cast<std::size_t>(got)});
}

}  // namespace horo::runtime
