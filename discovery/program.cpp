// SPDX-License-Identifier: Apache-2.0
#include "discovery/program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/printable.hpp"
#include "base/unique_fd.hpp"
#include "discovery/text_file.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): some libcs do not declare it

namespace horo::discovery {

namespace {

constexpr std::size_t kLastWords = 4096;
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(1);  // Limit of one poll.

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  return Pipe{.read = UniqueFd(ends[0]), .write = UniqueFd(ends[1])};
}

pollfd until_cancelled(const WaitLimit& limit) {
  return {limit.cancel, POLLIN, 0};
}

/// Waits until one of `streams` has data or ends. The last of them is until_cancelled(). Fails:
/// timed_out, cancelled, io.
Status wait_for(std::span<pollfd> streams, Deadline deadline) {
  for (;;) {
    const auto left = deadline.left(SteadyClock::instance().now());
    if (left <= Duration::zero()) return fail(Errc::timed_out, "it did not end in time");
    const auto ms = std::min(std::chrono::ceil<std::chrono::milliseconds>(left), kLongest);
    const int ready = poll(streams.data(), streams.size(), static_cast<int>(ms.count()));
    if (ready > 0 && streams.back().revents != 0)
      return fail(Errc::cancelled, "nobody waits for it any longer");
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail_errno(errno, "waiting for its output");
  }
}

/// A child in its own process group. The destructor kills the rest of the group.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  ~Child() {
    kill(-pid_, SIGKILL);
    if (!reaped_) waitpid(pid_, nullptr, 0);
  }

  /// Waits for the child's end and returns its wait status.
  Result<int> wait(WaitLimit limit) {
    const UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (!handle) return fail_errno(errno, "watching it");
    std::array events{pollfd{handle.value(), POLLIN, 0}, until_cancelled(limit)};
    HORO_TRY_STATUS(wait_for(events, limit.deadline));
    int status = 0;
    if (waitpid(pid_, &status, 0) < 0) return fail_errno(errno, "waiting for it");
    reaped_ = true;
    return status;
  }

 private:
  const pid_t pid_;
  bool reaped_ = false;
};

Result<pid_t> start(const std::vector<std::string>& command, const Pipe& out, const Pipe& err) {
  std::vector<char*> arguments;
  for (const auto& word : command)
    arguments.push_back(
        const_cast<char*>(word.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast):
                                           // posix_spawnp's signature
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.value(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.value(), STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, command.front().c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == ENOEXEC)
    return fail(Errc::permission_denied,
                "it is not a program; a script must begin with #! and its interpreter");
  if (error == ENOENT && command.front().find('/') == std::string::npos) {
    return fail(Errc::not_found,
                "there is no program '{}': give its path, or put its folder into PATH",
                command.front());
  }
  if (error != 0) return fail_errno(error, "starting it");
  return pid;
}

/// Reads both streams to the end.
Status gather(const Pipe& out, const Pipe& err, WaitLimit limit, std::string& text,
              std::string& words) {
  std::array streams{pollfd{out.read.value(), POLLIN, 0}, pollfd{err.read.value(), POLLIN, 0},
                     until_cancelled(limit)};
  std::array<char, 65536> block{};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    HORO_TRY_STATUS(wait_for(streams, limit.deadline));
    for (std::size_t i = 0; i < 2; ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      const auto n = read(streams[i].fd, block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) streams[i].fd = -1;
      if (n > 0) (i == 0 ? text : words).append(block.data(), static_cast<std::size_t>(n));
    }
    if (text.size() > kMostHostText)
      return fail(Errc::resource_exhausted, "it printed more than {} bytes", kMostHostText);
    if (words.size() > kLastWords) words.erase(0, words.size() - kLastWords);
  }
  return {};
}

std::string last_line(const std::string& words) {
  const auto end = words.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const auto before = words.find_last_of('\n', end);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return printable(std::string_view(words).substr(begin, end - begin + 1));
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command, WaitLimit limit) {
  HORO_TRY(auto out, make_pipe());
  HORO_TRY(auto err, make_pipe());
  HORO_TRY(const pid_t pid, start(command, out, err));
  Child child(pid);
  out.write.reset();
  err.write.reset();
  std::string text;
  std::string words;
  HORO_TRY_STATUS(gather(out, err, limit, text, words));
  HORO_TRY(const int status, child.wait(limit));
  if (status == 0) return text;
  const auto how = WIFSIGNALED(status)
                       ? fmt::format("was killed by signal {}", WTERMSIG(status))
                       : fmt::format("ended with exit code {}", WEXITSTATUS(status));
  const auto last = last_line(words);
  return fail(Errc::unavailable, "it {}{}{}", how, last.empty() ? "" : ": ", last);
}

}  // namespace horo::discovery
