// SPDX-License-Identifier: Apache-2.0
#include "discovery/program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <span>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/text/printable.hpp"
#include "base/unique_fd.hpp"
#include "discovery/text_file.hpp"

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
    if (left <= Duration::zero())
      return fail(Errc::timed_out, "it did not end in time (see --discovery-timeout)");
    const auto ms = std::min(std::chrono::ceil<std::chrono::milliseconds>(left), kLongest);
    const int ready = poll(streams.data(), streams.size(), static_cast<int>(ms.count()));
    if (ready > 0 && streams.back().revents != 0)
      return fail(Errc::cancelled, "nobody waits for it any longer");
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail_errno(errno, "waiting for its output");
  }
}

/// Reads what a ready stream has, and forgets the stream when it ends.
void take(pollfd& stream, std::string& text) {
  std::array<char, 65536> block{};
  const auto n = read(stream.fd, block.data(), block.size());
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) stream.fd = -1;
  if (n > 0) text.append(block.data(), static_cast<std::size_t>(n));
}

std::string last_line(const std::string& words) {
  const auto end = words.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const auto before = words.find_last_of('\n', end);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return printable(std::string_view(words).substr(begin, end - begin + 1));
}

}  // namespace

Result<RunningProgram> RunningProgram::start(const std::vector<std::string>& command) {
  HORO_TRY(auto out, make_pipe());
  HORO_TRY(auto err, make_pipe());
  HORO_TRY(
      auto program,
      KeptProgram::start({.words = command, .out = out.write.value(), .err = err.write.value()}));
  return RunningProgram(std::move(program), std::move(out.read), std::move(err.read));
}

Result<ProgramEnd> RunningProgram::hear(WaitLimit limit) {
  ProgramEnd end;
  std::optional<int> status;
  std::array streams{pollfd{out_.value(), POLLIN, 0}, pollfd{err_.value(), POLLIN, 0},
                     pollfd{program_.ended(), POLLIN, 0}, until_cancelled(limit)};
  while (streams[0].fd >= 0 || streams[1].fd >= 0 || !status) {
    HORO_TRY_STATUS(wait_for(streams, limit.deadline));
    if (streams[0].revents != 0) take(streams[0], end.output);
    if (streams[1].revents != 0) take(streams[1], end.errors);
    if (streams[2].revents != 0) {
      HORO_TRY(status, program_.wait_status());
      streams[2].fd = -1;
    }
    if (end.output.size() > kMostHostText)
      return fail(Errc::resource_exhausted, "it printed more than {} bytes", kMostHostText);
    if (end.errors.size() > kLastWords) end.errors.erase(0, end.errors.size() - kLastWords);
  }
  end.wait_status = *status;
  return end;
}

Result<std::string> output_of(const std::vector<std::string>& command, WaitLimit limit) {
  HORO_TRY(auto program, RunningProgram::start(command));
  HORO_TRY(auto end, program.hear(limit));
  const int status = end.wait_status;
  if (status == 0) return std::move(end.output);
  const auto how = WIFSIGNALED(status)
                       ? fmt::format("was killed by signal {}", WTERMSIG(status))
                       : fmt::format("ended with exit code {}", WEXITSTATUS(status));
  const auto last = last_line(end.errors);
  return fail(Errc::unavailable, "it {}{}{}", how, last.empty() ? "" : ": ", last);
}

}  // namespace horo::discovery
