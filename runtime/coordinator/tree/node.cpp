// SPDX-License-Identifier: Apache-2.0
// The life of a node and its thread; connections are in node_connections.cpp.
#include "runtime/coordinator/tree/node.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/signals_blocked.hpp"
#include "runtime/coordinator/tree/connection.hpp"

namespace horo::runtime::tree {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

constexpr Duration kFarewell = 1s;
constexpr Duration kCancelPeriod = 20ms;  // How often a start looks whether it still makes sense.

TimePoint now() {
  return SteadyClock::instance().now();
}

}  // namespace

Result<Listener> Listener::open(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(address.empty() ? nullptr : address.c_str(), "0", &hints, &list);
  if (code != 0) {
    return fail(Errc::invalid_argument, "'{}' is not the number of an interface: {}", address,
                gai_strerror(code));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> entries(list, &freeaddrinfo);
  Listener listener;
  listener.socket =
      UniqueFd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!listener.socket) return fail_errno(errno, "making a socket");
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (bind(listener.socket.value(), list->ai_addr, list->ai_addrlen) != 0 ||
      listen(listener.socket.value(), SOMAXCONN) != 0 ||
      getsockname(listener.socket.value(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail_errno(errno, fmt::format("listening at '{}' for other hosts", address));
  }
  listener.port =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return listener;
}

Node::Node(NodeParams params, Listener listener, HostState& state)
    : params_(std::move(params)),
      key_(channel_key(params_.secret, params_.leader.epoch)),
      listener_(std::move(listener)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      leader_(params_.leader, params_.hosts, state, *this),
      by_link_(leader_.place().children.size() + 1) {}

Result<std::unique_ptr<Node>> Node::start(NodeParams params, Listener listener, HostState& state,
                                          const Deadline& deadline,
                                          const std::function<bool()>& cancelled) {
  HORO_TRY_STATUS(validate(params.hosts, params.leader.radix));
  std::unique_ptr<Node> node(new Node(std::move(params), std::move(listener), state));
  if (!node->bell_) return fail_errno(errno, "making an eventfd");
  HORO_TRY_STATUS(node->meet(deadline, cancelled));
  node->listener_.socket.reset();
  node->thread_ = start_quiet_thread([raw = node.get()] { raw->run(); });
  return node;
}

Status Node::meet(const Deadline& deadline, const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex_);
  while (!leader_.connected() || has_output()) {
    if (cancelled()) return fail(Errc::peer_lost, "a rank was lost before all hosts had met");
    if (leader_.place().parent >= 0 && !parent_) {
      // The parent listens before anybody knows its address. It may close on us for strangers
      // crowd its port; what it says with reason will not change.
      if (refusal_.code != Errc::ok && refusal_.code != Errc::peer_lost) return Failure(refusal_);
      HORO_TRY_STATUS(connect_parent(deadline));
    }
    const auto left = deadline.left(now());
    if (left <= Duration::zero()) {
      return fail(
          Errc::timed_out, "the leaders of {} have not come{}{}", leader_.absent(),
          refusal_.code == Errc::ok ? "" : "; a connection was refused: ", refusal_.message);
    }
    turn(lock, std::min(left, kCancelPeriod));
  }
  return {};
}

Node::~Node() {
  leave();
}

void Node::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (!leaving_) leader_.leave();
    leaving_ = true;
    flush();
  }
  ring();
  if (thread_.joinable()) thread_.join();
}

void Node::run() {
  pthread_setname_np(pthread_self(), "horo-tree");
  std::unique_lock lock(mutex_);
  auto until = Deadline::never();
  while (!leaving_ || has_output()) {
    if (leaving_ && until.is_never()) until = Deadline::in(SteadyClock::instance(), kFarewell);
    if (until.expired(now())) break;
    wakes_.fetch_add(1, std::memory_order_relaxed);
    const auto next = std::min(leader_.next_time(), soon_.load(std::memory_order_seq_cst));
    turn(lock, std::min(until.left(now()), Deadline::at(next).left(now())));
    if (soon_.load(std::memory_order_relaxed) <= now()) {
      // Given back first: whoever has news after this look makes it due again.
      soon_.store(TimePoint::max(), std::memory_order_seq_cst);
      leader_.on_news(now());
    }
    leader_.on_time(now());
    flush();
  }
  connections_.clear();
  std::fill(by_link_.begin(), by_link_.end(), nullptr);
}

void Node::turn(std::unique_lock<std::mutex>& lock, Duration longest) {
  std::vector<pollfd> entries{{.fd = bell_.value(), .events = POLLIN, .revents = 0},
                              {.fd = listener_.socket.value(), .events = POLLIN, .revents = 0}};
  for (const auto& connection : connections_) {
    const auto writes = connection->channel.output().empty() ? 0 : POLLOUT;
    entries.push_back({.fd = connection->socket.value(),
                       .events = static_cast<short>(POLLIN | writes),
                       .revents = 0});
  }
  const auto count = connections_.size();
  timespec time{};
  const bool limited = longest != Duration::max();
  if (limited) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
    time = {.tv_sec = seconds.count(), .tv_nsec = static_cast<long>((longest - seconds).count())};
  }
  lock.unlock();
  ppoll(entries.data(), entries.size(), limited ? &time : nullptr, nullptr);
  lock.lock();
  if ((entries[0].revents & POLLIN) != 0) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto n = ::read(bell_.value(), &rings, sizeof rings);
  }
  // Connections are only added meanwhile, at the end, and removed by sweep().
  for (std::size_t i = 0; i < count; ++i) {
    auto& connection = *connections_[i];
    const auto events = entries[i + 2].revents;
    if ((events & POLLOUT) != 0) write(connection);
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(connection);
  }
  if ((entries[1].revents & POLLIN) != 0) accept_all();
  flush();
  sweep();
}

void Node::ring() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(bell_.value(), &one, sizeof one);
}

void Node::add_set(SetId set, const RankRanges& members, HostLog* log) {
  const std::lock_guard lock(mutex_);
  leader_.add_set(set, members, log, now());
  leader_.on_news(now());
  flush();
  ring();
}

void Node::remove_set(SetId set) {
  const std::lock_guard lock(mutex_);
  leader_.remove_set(set);
}

void Node::poke() {
  const std::lock_guard lock(mutex_);
  const auto due = leader_.next_time();
  leader_.on_news(now());
  flush();
  // The thread sleeps for what it knew: tell it of output that did not fit and of earlier times.
  if (has_output() || leader_.next_time() < due) ring();
}

void Node::ask(Question question) {
  const std::lock_guard lock(mutex_);
  leader_.ask(std::move(question), now());
  flush();
  ring();
}

void Node::poke_soon(Duration delay) {
  auto idle = TimePoint::max();
  if (soon_.compare_exchange_strong(idle, now() + delay, std::memory_order_seq_cst)) ring();
}

LeaderCounters Node::counters() const {
  const std::lock_guard lock(mutex_);
  return leader_.counters();
}

}  // namespace horo::runtime::tree
