// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_title.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/unique_fd.hpp"

namespace horo {

namespace {

/// The command line as the kernel has it; empty: not known.
std::string own_command_line() {
  const UniqueFd file(open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> part{};
  std::string text;
  while (file) {
    const auto got = read(file.value(), part.data(), part.size());
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

ProcessTitle::ProcessTitle() : original_(own_command_line()) {
  // The kernel's part begins at argv[0], unless the program was started through its loader.
  const std::string_view first(program_invocation_name);
  if (original_.size() > first.size() && original_.starts_with(first) &&
      original_[first.size()] == '\0')
    arguments_ = program_invocation_name;
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

}  // namespace horo
