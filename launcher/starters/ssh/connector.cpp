// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/connector.hpp"

#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

namespace horo::launcher {

namespace {

/// Time for each address but the last, which may take as long as the start of the job.
constexpr Duration kTryTimeout = std::chrono::seconds(3);

}  // namespace

Connector::Connector(Loop& loop, std::vector<Endpoint> endpoints, Answer answer)
    : loop_(loop), endpoints_(std::move(endpoints)), answer_(std::move(answer)) {
  timer_ = loop_.after(Duration::zero(), [this] { try_next(); });
}

void Connector::try_next() {
  timer_.reset();
  const auto& endpoint = endpoints_[current_];
  socket_ = UniqueFd(
      socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket_) return fail_current(errno);
  const int on = 1;
  setsockopt(socket_.value(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(socket_.value(), endpoint.get(), endpoint.size) != 0 && errno != EINPROGRESS)
    return fail_current(errno);
  auto watch = loop_.watch(socket_.value());
  if (!watch) return fail_current(EMFILE);
  watch_ = std::move(*watch);
  watch_.on_writable([this] { look(); });
  if (current_ + 1 < endpoints_.size())
    timer_ = loop_.after(kTryTimeout, [this] { fail_current(ETIMEDOUT); });
}

void Connector::look() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket_.value(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return fail_current(error);
  watch_.reset();
  timer_.reset();
  std::exchange(answer_, nullptr)(std::move(socket_));
}

void Connector::fail_current(int error) {
  watch_.reset();
  timer_.reset();
  socket_.reset();
  failures_ += fmt::format("{}{}: {}", failures_.empty() ? "" : "; ", address(),
                           std::generic_category().message(error));
  if (current_ + 1 == endpoints_.size())
    return std::exchange(answer_, nullptr)(fail(Errc::unavailable, "{}", failures_));
  ++current_;
  timer_ = loop_.after(Duration::zero(), [this] { try_next(); });
}

}  // namespace horo::launcher
