// SPDX-License-Identifier: Apache-2.0
#include "launcher/process/process_title.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/unique_fd.hpp"

namespace horo::launcher {

namespace {

/// The size of the command line as the kernel has it; 0: not known.
std::size_t size_of_command_line() {
  const UniqueFd file(open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> part{};
  std::size_t size = 0;
  while (file) {
    const auto got = read(file.value(), part.data(), part.size());
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

}  // namespace

ProcessTitle::ProcessTitle() {
  const auto size = size_of_command_line();
  if (size == 0) return;
  arguments_ = program_invocation_name;  // It is argv[0], where the kernel's part begins.
  original_.assign(arguments_, size);
}

void ProcessTitle::show(const char* title) const {
  prctl(PR_SET_NAME, title);
  if (arguments_ == nullptr) return;
  // The last byte stays NUL. The kernel would go on reading behind it otherwise.
  std::memset(arguments_, 0, original_.size());
  std::memcpy(arguments_, title, std::min(std::strlen(title), original_.size() - 1));
}

void ProcessTitle::restore(const char* name) const {
  prctl(PR_SET_NAME, name);
  if (arguments_ != nullptr) std::memcpy(arguments_, original_.data(), original_.size());
}

}  // namespace horo::launcher
