// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.hpp"
#include "runtime/bootstrap/identity/process_manager.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr std::string_view kPmiKey = "horo-store";
constexpr std::size_t kMostLine = 4096;
constexpr Duration kLastWords = std::chrono::seconds(1);

/// Lines of "cmd=NAME key=value ..." there and back. MPI in the same process speaks over the same
/// descriptor at other times: nothing is read ahead, and nothing is finalized.
class PmiWire {
 public:
  PmiWire(int fd, const Deadline& deadline) : fd_(fd), deadline_(deadline) {}

  /// The answer, if it is `wanted`.
  Result<std::string> ask(const std::string& line, std::string_view wanted) const {
    HORO_TRY_STATUS(send(line + "\n"));
    HORO_TRY(std::string answer, receive());
    if (answer.starts_with(fmt::format("cmd={}", wanted)) &&
        (answer.find(" rc=") == std::string::npos || answer.find(" rc=0") != std::string::npos))
      return answer;
    return fail(Errc::protocol, "the process manager answered '{}' to '{}'", answer, line);
  }

 private:
  Status wait_for(short events) const {
    const auto now = SteadyClock::instance().now();
    if (deadline_.expired(now)) {
      return fail(Errc::timed_out,
                  "not all ranks have called horo_init (PMI); raise HORO_START_TIMEOUT if they are "
                  "only slow");
    }
    pollfd watched{.fd = fd_, .events = events, .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::min<Duration>(deadline_.left(now), std::chrono::minutes(1)));
    if (poll(&watched, 1, static_cast<int>(left.count())) < 0 && errno != EINTR)
      return fail_errno(errno, "waiting for the process manager");
    return {};
  }

  Status send(std::string_view bytes) const {
    while (!bytes.empty()) {
      HORO_TRY_STATUS(wait_for(POLLOUT));
      const auto put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (put < 0) return fail_errno(errno, "writing to the process manager (PMI_FD)");
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
  }

  Result<std::string> receive() const {
    std::string line;
    while (line.size() < kMostLine) {
      HORO_TRY_STATUS(wait_for(POLLIN));
      char c = 0;
      const auto got = recv(fd_, &c, 1, MSG_DONTWAIT);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) return fail_errno(errno, "reading from the process manager (PMI_FD)");
      if (got == 0)
        return fail(Errc::peer_lost, "the process manager has closed its connection (PMI_FD)");
      if (c == '\n') return line;
      line += c;
    }
    return fail(Errc::protocol, "the process manager sends a line without an end");
  }

  const int fd_;
  const Deadline& deadline_;
};

Result<std::string> value_in(const std::string& line, std::string_view key) {
  const auto named = fmt::format(" {}=", key);
  const auto at = line.find(named);
  if (at == std::string::npos)
    return fail(Errc::protocol, "the process manager's '{}' has no {}", line, key);
  const auto from = at + named.size();
  return line.substr(from, line.find(' ', from) - from);
}

}  // namespace

Result<std::string> broadcast_by_pmi(int pmi_fd, Rank me, const std::string& word,
                                     const Deadline& deadline) {
  const PmiWire wire(pmi_fd, deadline);
  HORO_TRY_STATUS([&]() -> Status {
    HORO_TRY(const auto ready,
             wire.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"));
    static_cast<void>(ready);
    return {};
  }());
  HORO_TRY(const auto named, wire.ask("cmd=get_my_kvsname", "my_kvsname"));
  HORO_TRY(const auto space, value_in(named, "kvsname"));
  if (me == Rank{0}) {
    const auto line = fmt::format("cmd=put kvsname={} key={} value={}", space, kPmiKey, word);
    if (auto put = wire.ask(line, "put_result"); !put) return put;
  }
  if (auto all = wire.ask("cmd=barrier_in", "barrier_out"); !all) return all;
  HORO_TRY(const auto answer,
           wire.ask(fmt::format("cmd=get kvsname={} key={}", space, kPmiKey), "get_result"));
  return value_in(answer, "value");
}

std::uint64_t socket_inode(int fd) {
  struct stat status {};

  return fd >= 0 && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

void leave_pmi(int pmi_fd, std::uint64_t inode) {
  if (inode == 0 || socket_inode(pmi_fd) != inode) return;
  // Where MPI was started but not finalized, its own end is still to come, or was not wanted.
  using Query = int (*)(int*);
  const auto initialized = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  int started = 0;
  if (initialized != nullptr && initialized(&started) == 0 && started != 0) return;
  const auto soon = Deadline::in(SteadyClock::instance(), kLastWords);
  const PmiWire wire(pmi_fd, soon);
  static_cast<void>(wire.ask("cmd=finalize", "finalize_ack"));
}

}  // namespace horo::runtime::bootstrap
