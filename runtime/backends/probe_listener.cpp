// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/probe_listener.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/deadline.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime {

namespace {

constexpr auto kHalf = ProbeListener::kSecretBytes / 2;
constexpr auto kProbeTimeout = std::chrono::seconds(1);
constexpr int kRefusedAcceptMs = 10;
constexpr timeval kSilentClient{.tv_sec = 0, .tv_usec = 200'000};

Result<std::string> make_secret() {
  std::array<unsigned char, ProbeListener::kSecretBytes / 2> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail_errno(errno, "getrandom");
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// IPv6 and IPv4 on one port, or IPv4 alone where there is no IPv6.
Result<int> listen_anywhere(std::uint16_t& port) {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  auto length = static_cast<socklen_t>(sizeof any);
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int off = 0;
  if (fd >= 0) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&any), length) != 0) {
    if (fd >= 0) close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    any = {};
    any.sin6_family = AF_INET;  // The port stands at the same place.
    length = sizeof(sockaddr_in);
    if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&any), length) != 0) {
      const auto failure = fail_errno(errno, "bind a TCP socket to any port");
      close(fd);
      return failure;
    }
  }
  if (fd < 0) return fail_errno(errno, "socket");
  if (listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&any), &length) != 0) {
    const auto failure = fail_errno(errno, "listen");
    close(fd);
    return failure;
  }
  port = ntohs(any.sin6_port);
  return fd;
}

/// One address being tried.
struct Attempt {
  int fd = -1;
  std::string got;
  bool asked = false;
};

int connect_to(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool under_way =
      fd >= 0 && (connect(fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
  freeaddrinfo(found);
  if (under_way) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/// Advances one attempt; true when the right answer has arrived. Closes an attempt that failed.
bool advance(Attempt& attempt, const std::string& secret) {
  const auto give_up = [&attempt] {
    close(attempt.fd);
    attempt.fd = -1;
    return false;
  };
  if (!attempt.asked) {
    if (send(attempt.fd, secret.data(), kHalf, MSG_NOSIGNAL) != static_cast<ssize_t>(kHalf))
      return give_up();
    attempt.asked = true;
    return false;
  }
  std::array<char, kHalf> block{};
  const auto count = recv(attempt.fd, block.data(), kHalf - attempt.got.size(), 0);
  if (count <= 0) return give_up();
  attempt.got.append(block.data(), static_cast<std::size_t>(count));
  return attempt.got.size() == kHalf && (attempt.got == secret.substr(kHalf) || give_up());
}

/// Position of the first attempt that succeeds, or their number.
std::size_t race(std::vector<Attempt>& attempts, const std::string& secret) {
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, kProbeTimeout);
  for (;;) {
    std::vector<pollfd> waiting;
    for (const auto& attempt : attempts)
      waiting.push_back({attempt.fd, static_cast<short>(attempt.asked ? POLLIN : POLLOUT), 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left(clock.now()));
    const bool any = std::any_of(attempts.begin(), attempts.end(),
                                 [](const Attempt& attempt) { return attempt.fd >= 0; });
    if (!any || left.count() == 0) return attempts.size();
    poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (waiting[i].revents != 0 && advance(attempts[i], secret)) return i;
    }
  }
}

}  // namespace

Result<std::unique_ptr<ProbeListener>> ProbeListener::open() {
  HORO_TRY(auto secret, make_secret());
  std::uint16_t port = 0;
  HORO_TRY(const int listener, listen_anywhere(port));
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (stop < 0) {
    const auto failure = fail_errno(errno, "eventfd");
    close(listener);
    return failure;
  }
  return std::unique_ptr<ProbeListener>(new ProbeListener(listener, stop, port, std::move(secret)));
}

ProbeListener::ProbeListener(int listener, int stop, std::uint16_t port, std::string secret)
    : listener_(listener), stop_(stop), port_(port), secret_(std::move(secret)) {
  thread_ = start_quiet_thread([this] { serve(); });
}

ProbeListener::~ProbeListener() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_, &one, sizeof one);
  thread_.join();
  close(stop_);
  close(listener_);
}

void ProbeListener::serve() const {
  pthread_setname_np(pthread_self(), "horo-probe");
  for (;;) {
    std::array<pollfd, 2> events{{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}}};
    if (poll(events.data(), events.size(), -1) < 0 && errno != EINTR) return;
    if (events[0].revents != 0) return;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      // Without a descriptor, the connection stays in the queue: look again after a moment.
      poll(events.data(), 1, kRefusedAcceptMs);
      continue;
    }
    answer(connection);
    close(connection);
  }
}

void ProbeListener::answer(int connection) const {
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kSilentClient, sizeof kSilentClient);
  std::array<char, kHalf> asked{};
  if (recv(connection, asked.data(), asked.size(), MSG_WAITALL) != static_cast<ssize_t>(kHalf))
    return;
  if (secret_.compare(0, kHalf, asked.data(), asked.size()) != 0) return;
  send(connection, secret_.data() + kHalf, kHalf, MSG_NOSIGNAL);
}

std::string first_answering(std::span<const std::string> addresses, std::uint16_t port,
                            const std::string& secret) {
  std::vector<Attempt> attempts;
  for (const auto& address : addresses) attempts.push_back({.fd = connect_to(address, port)});
  const auto winner = race(attempts, secret);
  for (const auto& attempt : attempts) {
    if (attempt.fd >= 0) close(attempt.fd);
  }
  return winner < addresses.size() ? addresses[winner] : "";
}

}  // namespace horo::runtime
