// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/trial_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "launcher/process/spawn.hpp"

namespace horo::apps {

namespace {

constexpr int kLookMs = 200;
/// A stopped command has its own grace time, and then this long.
constexpr double kPatienceSeconds = 60;

double seconds_since(TimePoint begin) {
  return std::chrono::duration<double>(SteadyClock::instance().now() - begin).count();
}

/// The descriptors of the child's standard streams.
struct ChildStreams {
  UniqueFd input;
  UniqueFd output;

  int out() const { return output ? output.value() : STDERR_FILENO; }
};

Result<ChildStreams> open_streams(const std::string& path) {
  ChildStreams streams;
  streams.input = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!streams.input) return fail_errno(errno, "/dev/null");
  if (path.empty()) return streams;
  streams.output = UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!streams.output) return fail_errno(errno, fmt::format("the output of the trial, '{}'", path));
  return streams;
}

/// A started command until its end. Thread: owner.
class Running {
 public:
  Running(pid_t pid, const TrialProcess& process, const UserSignals& signals)
      : pid_(pid),
        ended_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
        process_(process),
        signals_(signals) {}

  TrialProcessEnd wait() {
    while (!wait_a_moment()) {
      end_.seconds = seconds_since(begin_);
      while (const int signal = signals_.take()) take(signal);
      if (!stopping_ && process_.is_done && process_.is_done(end_.seconds)) {
        end_.was_done = true;
        stop();
      } else if (!stopping_ && end_.seconds > process_.limit_seconds) {
        end_.timed_out = true;
        stop();
      } else if (stopping_ && end_.seconds > stopped_at_ + kPatienceSeconds) {
        kill(pid_, SIGKILL);
      }
    }
    if (!stopping_) end_.seconds = seconds_since(begin_);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    end_.status = launcher::ExitStatus(status);
    return end_;
  }

 private:
  /// True: the command has ended.
  bool wait_a_moment() const {
    std::array<pollfd, 2> wanted{{{.fd = ended_.value(), .events = POLLIN, .revents = 0},
                                  {.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}}};
    poll(wanted.data(), wanted.size(), kLookMs);
    return wanted.front().revents != 0;
  }

  void take(int signal) {
    if (signal == SIGTSTP) {
      kill(pid_, SIGTSTP);
      raise(SIGSTOP);
      kill(pid_, SIGCONT);
      return;
    }
    if (end_.signal != 0) {
      kill(pid_, SIGINT);
      return;
    }
    end_.signal = signal;
    stop();
  }

  void stop() {
    if (stopping_) return;
    stopping_ = true;
    stopped_at_ = end_.seconds;
    kill(pid_, SIGTERM);
  }

  const pid_t pid_;
  const UniqueFd ended_;  ///< A descriptor of the process: readable when it has ended.
  const TrialProcess& process_;
  const UserSignals& signals_;
  const TimePoint begin_ = SteadyClock::instance().now();
  bool stopping_ = false;
  double stopped_at_ = 0;
  TrialProcessEnd end_;
};

}  // namespace

Result<UserSignals> UserSignals::block() {
  sigset_t set{};
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGTSTP}) sigaddset(&set, signal);

  // Under nohup, the end of the terminal must not end the search.
  struct sigaction hang_up {};

  if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
    sigaddset(&set, SIGHUP);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return fail_errno(errno, "blocking signals");
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_errno(errno, "a descriptor for signals");
  return UserSignals(std::move(fd));
}

int UserSignals::take() const {
  signalfd_siginfo info{};
  const auto size = read(fd_.value(), &info, sizeof info);
  return size == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

Result<TrialProcessEnd> run_trial_process(const TrialProcess& process, const UserSignals& signals) {
  HORO_TRY(const auto streams, open_streams(process.output));
  HORO_TRY(
      const auto pid,
      launcher::spawn_process(process.command, {{.from = streams.input.value(), .to = STDIN_FILENO},
                                                {.from = streams.out(), .to = STDOUT_FILENO},
                                                {.from = streams.out(), .to = STDERR_FILENO}}));
  return Running(pid, process, signals).wait();
}

std::string last_lines(const std::string& path, std::size_t most) {
  constexpr std::streamoff kMostBytes = 16384;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::streamoff>(file.tellg());
  if (size <= 0) return {};
  const auto count = std::min(size, kMostBytes);
  std::string text(static_cast<std::size_t>(count), '\0');
  file.seekg(size - count);
  file.read(text.data(), count);
  auto from = text.size();
  if (text.ends_with('\n')) --from;
  for (std::size_t lines = 0; lines < most && from != std::string::npos && from > 0; ++lines)
    from = text.rfind('\n', from - 1);
  return from == std::string::npos ? text : text.substr(from == 0 ? 0 : from + 1);
}

}  // namespace horo::apps
