// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/silent_ranks.hpp"

#include <csignal>
#include <cstdio>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/unique_fd.hpp"
#include "runtime/host/process_state.hpp"

namespace horo::runtime {

namespace {

/// The process maps the board. Its number comes from shared memory and may be reused by now.
bool maps_board(std::uint32_t pid, std::uint64_t inode) {
  std::FILE* const maps = std::fopen(fmt::format("/proc/{}/maps", pid).c_str(), "re");
  if (maps == nullptr) return false;
  const auto wanted = fmt::format(" {} ", inode);
  bool found = false;
  char* line = nullptr;
  std::size_t room = 0;
  while (!found && getline(&line, &room, maps) > 0) {
    const std::string_view text(line);
    found = text.find("/memfd:horo-board") != std::string_view::npos &&
            text.find(wanted) != std::string_view::npos;
  }
  std::free(line);
  std::fclose(maps);
  return found;
}

bool uses_board(RankState state) {
  return state == RankState::attached || state == RankState::leaving;
}

}  // namespace

void end_silent_ranks(HostMemory& host) {
  for (int r = 0; r < host.local_size(); ++r) {
    auto& slot = host.slot(LocalRank{r});
    auto state = slot.state.load(std::memory_order_seq_cst);
    const auto pid = slot.pid.load(std::memory_order_relaxed);
    if (!uses_board(state) || slot.poison_ack.load(std::memory_order_seq_cst) != 0) continue;
    if (pid == 0 || pid == static_cast<std::uint32_t>(getpid())) continue;
    const auto process = process_state(pid);
    const bool killed = slot.kill_sent.load(std::memory_order_relaxed) != 0;
    if (process == ProcessState::gone || (killed && process == ProcessState::blocked)) {
      // A process that was killed in uninterruptible sleep never returns to its own code.
      if (slot.state.compare_exchange_strong(state, RankState::dead, std::memory_order_seq_cst))
        host.waker().ring_all();
      continue;
    }
    const UniqueFd held(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!held || !maps_board(pid, host.inode())) continue;
    if (syscall(SYS_pidfd_send_signal, held.value(), SIGKILL, nullptr, 0) == 0)
      slot.kill_sent.store(1, std::memory_order_relaxed);
  }
}

}  // namespace horo::runtime
