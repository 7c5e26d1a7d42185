// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local/pidfd_watcher.hpp"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/board_header.hpp"
#include "base/deadline.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr std::uint64_t kStop = ~std::uint64_t{0};

/// PIDFD_GET_INFO of Linux 6.15; older kernels refuse it.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroupid;
  std::uint32_t ids[11];
  std::int32_t exit_code;  ///< As waitpid has it, with PIDFD_INFO_EXIT in `mask`: once reaped.
};

static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1U << 3U;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

/// The process id behind a pidfd, while it is not reaped.
int pid_of(int pidfd) {
  const auto path = fmt::format("/proc/self/fdinfo/{}", pidfd);
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return -1;
  std::array<char, 256> line{};
  int pid = -1;
  while (std::fgets(line.data(), line.size(), file) != nullptr) {
    if (std::sscanf(line.data(), "Pid: %d", &pid) == 1) break;
  }
  std::fclose(file);
  return pid;
}

/// The last number in /proc/PID/stat, while nobody has reaped the process.
std::optional<int> status_of_zombie(int pidfd) {
  const int pid = pid_of(pidfd);
  if (pid <= 0) return std::nullopt;
  const auto path = fmt::format("/proc/{}/stat", pid);
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return std::nullopt;
  std::array<char, 2048> block{};
  const auto got = std::fread(block.data(), 1, block.size() - 1, file);
  std::fclose(file);
  const std::string_view text(block.data(), got);
  const auto name_end = text.rfind(')');
  const auto last = text.find_last_of(' ');
  if (name_end == std::string_view::npos || last == std::string_view::npos ||
      text.substr(name_end, 3) != ") Z")
    return std::nullopt;
  return std::atoi(text.data() + last + 1);
}

std::optional<int> status_of_reaped(int pidfd) {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (ioctl(pidfd, kGetInfo, &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return info.exit_code;
}

/// How a process ended, as far as a process that is not its parent can find out.
Poison poison_by(Rank rank, int pidfd) {
  auto status = status_of_zombie(pidfd);
  // Its parent may reap it before or between the two calls.
  if (!status) status = status_of_reaped(pidfd);
  if (!status) return {.rank = rank, .cause = LossCause::vanished, .detail = 0};
  if (WIFSIGNALED(*status)) {
    return {.rank = rank,
            .cause = LossCause::signalled,
            .detail = static_cast<std::uint32_t>(WTERMSIG(*status))};
  }
  return {.rank = rank,
          .cause = LossCause::exited,
          .detail = static_cast<std::uint32_t>(WEXITSTATUS(*status))};
}

class PidfdWatcher final : public PeerWatcher {
 public:
  PidfdWatcher(const BoardView& board, std::vector<Peer> peers, PeerWatchOptions options,
               UniqueFd epoll, UniqueFd stop)
      : board_(board),
        options_(std::move(options)),
        epoll_(std::move(epoll)),
        stop_(std::move(stop)),
        peers_(std::move(peers)) {
    thread_ = start_quiet_thread([this] { run(); });
  }

  PidfdWatcher(const PidfdWatcher&) = delete;
  PidfdWatcher& operator=(const PidfdWatcher&) = delete;

  ~PidfdWatcher() override {
    eventfd_write(stop_.value(), 1);
    thread_.join();
    unmap_board_header(board_);
  }

  void note_loss(Rank /*lost*/) override {}  // All peers read the same board.

 private:
  void run() {
    pthread_setname_np(pthread_self(), "horo-watch");
    const auto& clock = SteadyClock::instance();
    auto ack_limit = Deadline::never();
    std::array<epoll_event, 16> events{};
    for (;;) {
      const auto left = ack_limit.left(clock.now());
      const auto limit =
          left == Duration::max()
              ? -1
              : static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
      const int count = epoll_wait(epoll_.value(), events.data(), events.size(), limit);
      for (int i = 0; i < count; ++i) {
        const auto which = events[static_cast<std::size_t>(i)].data.u64;
        if (which == kStop) return;
        if (ended(peers_[which]) && ack_limit.is_never())
          ack_limit = Deadline::in(clock, options_.release_timeout);
      }
      if (ack_limit.expired(clock.now())) {
        kill_silent();
        ack_limit = Deadline::never();
      }
    }
  }

  /// True if the peer ended without having left.
  bool ended(const Peer& peer) {
    epoll_ctl(epoll_.value(), EPOLL_CTL_DEL, peer.pidfd.value(), nullptr);
    auto& state = board_->slot(peer.local_rank).state;
    auto last = state.load(std::memory_order_seq_cst);
    while (last != RankState::detached &&
           !state.compare_exchange_weak(last, RankState::dead, std::memory_order_seq_cst)) {
    }
    if (last == RankState::detached) return false;
    poison_board(board_, poison_by(peer.rank, peer.pidfd.value()), options_.host);
    return true;
  }

  void kill_silent() {
    for (const auto& peer : peers_) {
      const auto& slot = board_->slot(peer.local_rank);
      const auto state = slot.state.load(std::memory_order_seq_cst);
      const bool uses_board = state == RankState::attached || state == RankState::leaving;
      if (uses_board && slot.poison_ack.load(std::memory_order_seq_cst) == 0)
        syscall(SYS_pidfd_send_signal, peer.pidfd.value(), SIGKILL, nullptr, 0);
    }
  }

  const BoardView board_;
  const PeerWatchOptions options_;
  const UniqueFd epoll_;
  const UniqueFd stop_;
  const std::vector<Peer> peers_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<PeerWatcher>> watch_peers(int board, std::vector<Peer> peers,
                                                 PeerWatchOptions options) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno(errno, "watching the other ranks of this host (epoll)");
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) return fail_errno(errno, "watching the other ranks of this host (eventfd)");
  const auto add = [&epoll](int fd, std::uint64_t what) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = what}};
    return epoll_ctl(epoll.value(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  bool added = add(stop.value(), kStop);
  for (std::size_t i = 0; i < peers.size(); ++i) added = added && add(peers[i].pidfd.value(), i);
  if (!added) return fail_errno(errno, "watching the other ranks of this host");
  HORO_TRY(const auto mapped, map_board_header(board));
  return std::unique_ptr<PeerWatcher>(std::make_unique<PidfdWatcher>(
      mapped, std::move(peers), std::move(options), std::move(epoll), std::move(stop)));
}

}  // namespace horo::runtime::bootstrap
