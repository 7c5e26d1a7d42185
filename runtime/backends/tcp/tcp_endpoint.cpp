// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_endpoint.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/codec/bytes.hpp"
#include "base/kv/descriptor_limit.hpp"
#include "base/log.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

constexpr std::uint64_t kStopId = 0;
constexpr std::uint64_t kListenerId = 1;
constexpr Duration kHandshakeTime = 5s;
constexpr Duration kParkedTime = 60s;
constexpr Duration kPause = 100ms;  // Until the next try to accept, after an error.
constexpr std::size_t kMostParked = 4096;

TimePoint endpoint_now() {
  return SteadyClock::instance().now();
}

bool poll_for(int events, int fd, std::uint32_t what, std::uint64_t id) {
  epoll_event event{.events = what, .data = {.u64 = id}};
  return epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) == 0;
}

/// Listeners at the addresses of all rails, with one port, which some other process may have taken
/// at some of them.
Result<std::vector<kv::Listener>> listen_at(const std::vector<TcpRail>& rails) {
  constexpr int kTries = 16;
  int failed = 0;
  std::vector<kv::Listener> listeners;
  while (listeners.size() < rails.size()) {
    const auto port = listeners.empty() ? std::uint16_t{0} : listeners.front().address().port;
    auto listener = kv::Listener::open({rails[listeners.size()].address, port});
    if (listener) {
      listeners.push_back(std::move(*listener));
      continue;
    }
    if (listeners.empty() || ++failed == kTries) return Failure(std::move(listener).error());
    listeners.clear();
  }
  return listeners;
}

}  // namespace

Result<std::shared_ptr<TcpEndpoint>> TcpEndpoint::open(const std::string& address, int me,
                                                       const kv::Secret& secret,
                                                       kv::Encryption encryption) {
  return open(std::vector{TcpRail{.interface = {}, .address = address}}, me, secret, encryption);
}

Result<std::shared_ptr<TcpEndpoint>> TcpEndpoint::open(std::vector<TcpRail> rails, int me,
                                                       const kv::Secret& secret,
                                                       kv::Encryption encryption) {
  if (encryption == kv::Encryption::on) HORO_TRY_STATUS(kv::can_encrypt());
  HORO_TRY(auto listeners, listen_at(rails));
  UniqueFd events(epoll_create1(EPOLL_CLOEXEC));
  if (!events) return fail_errno(errno, "epoll_create1");
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return fail_errno(errno, "eventfd");
  bool polls = poll_for(events.value(), stop.value(), EPOLLIN, kStopId);
  for (const auto& listener : listeners)
    polls = polls && poll_for(events.value(), listener.descriptor(), EPOLLIN, kListenerId);
  if (!polls) return fail_errno(errno, "epoll_ctl");
  return std::shared_ptr<TcpEndpoint>(new TcpEndpoint(std::move(rails), std::move(listeners),
                                                      std::move(events), std::move(stop), me,
                                                      secret, encryption));
}

TcpEndpoint::TcpEndpoint(std::vector<TcpRail> rails, std::vector<kv::Listener> listeners,
                         UniqueFd events, UniqueFd stop, int me, const kv::Secret& secret,
                         kv::Encryption encryption)
    : rails_(std::move(rails)),
      listeners_(std::move(listeners)),
      events_(std::move(events)),
      stop_(std::move(stop)),
      me_(me),
      secret_(secret),
      encryption_(encryption) {
  thread_ = start_quiet_thread([this] { run(); });
}

TcpEndpoint::~TcpEndpoint() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_.value(), &one, sizeof one);
  thread_.join();
}

TcpContact TcpEndpoint::contact() const {
  TcpContact own;
  for (const auto& listener : listeners_) own.push_back(listener.address());
  return own;
}

void TcpEndpoint::add(const SetToken& token, TcpSet& set) {
  const MutexLock lock(mutex_);
  sets_[token] = &set;
  std::deque<Parked> others;
  for (auto& parked : parked_) {
    if (parked.edge.set == token) {
      welcome(std::move(parked.socket), parked.edge);
    } else {
      others.push_back(std::move(parked));
    }
  }
  parked_ = std::move(others);
}

void TcpEndpoint::remove(const SetToken& token) {
  const MutexLock lock(mutex_);
  sets_.erase(token);
  std::erase_if(watched_, [&](const auto& entry) { return entry.second.set == token; });
}

void TcpEndpoint::watch(int socket, const SetToken& token, int rank) {
  const MutexLock lock(mutex_);
  watch_locked(socket, token, rank);
}

std::uint64_t TcpEndpoint::watch_locked(int socket, const SetToken& token, int rank) {
  const auto id = next_id_++;
  if (poll_for(events_.value(), socket, EPOLLRDHUP | EPOLLET, id))
    watched_[id] = {.set = token, .rank = rank};
  return id;
}

std::size_t TcpEndpoint::strangers() const {
  const MutexLock lock(mutex_);
  return strangers_.size();
}

std::size_t TcpEndpoint::watched() const {
  const MutexLock lock(mutex_);
  return watched_.size();
}

// -- The thread ---------------------------------------------------------------------------------

void TcpEndpoint::run() {
  pthread_setname_np(pthread_self(), "horo-tcp");
  Duration limit = Duration::max();
  for (;;) {
    std::array<epoll_event, 64> found;  // NOLINT: filled by epoll_wait
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(limit, 1h));
    const int count = epoll_wait(events_.value(), found.data(), static_cast<int>(found.size()),
                                 limit == Duration::max() ? -1 : static_cast<int>(left.count()));
    if (count < 0 && errno != EINTR) return log::error("tcp", "epoll_wait fails: {}", errno);
    const MutexLock lock(mutex_);
    for (int i = 0; i < count; ++i) {
      const auto id = found[static_cast<std::size_t>(i)].data.u64;
      if (id == kStopId) return;
      handle(id);
    }
    drop_old(endpoint_now());
    limit = longest_sleep(endpoint_now());
  }
}

void TcpEndpoint::handle(std::uint64_t id) {
  if (id == kListenerId) return accept_all();
  if (const auto known = watched_.find(id); known != watched_.end()) {
    const auto [token, rank] = known->second;
    watched_.erase(known);
    if (const auto set = sets_.find(token); set != sets_.end()) set->second->peer_closed(rank);
    return;
  }
  hear(id);
}

Duration TcpEndpoint::longest_sleep(TimePoint now) const {
  auto until = TimePoint::max();
  if (!strangers_.empty()) until = strangers_.begin()->second.since + kHandshakeTime;
  if (!parked_.empty()) until = std::min(until, parked_.front().since + kParkedTime);
  if (paused_) until = std::min(until, *paused_);
  return until == TimePoint::max() ? Duration::max() : std::max(Duration::zero(), until - now);
}

void TcpEndpoint::drop_old(TimePoint now) {
  while (!strangers_.empty() && now >= strangers_.begin()->second.since + kHandshakeTime)
    strangers_.erase(strangers_.begin());
  while (!parked_.empty() && now >= parked_.front().since + kParkedTime) parked_.pop_front();
  if (paused_ && now >= *paused_) resume_accepting();
}

// -- Strangers ----------------------------------------------------------------------------------

void TcpEndpoint::accept_all() {
  for (auto& listener : listeners_) accept_some(listener);
}

void TcpEndpoint::accept_some(kv::Listener& listener) {
  // A bound, so that a flood does not keep this thread from hearing those it has accepted.
  for (int i = 0; i < 64; ++i) {
    const auto socket = listener.accept();
    if (!socket) return pause_accepting(socket.error());
    if (*socket < 0) return;
    take_in(*socket);
  }
}

void TcpEndpoint::take_in(int fd) {
  UniqueFd socket(fd);
  const auto nonce = kv::make_nonce();
  if (!nonce) return;
  if (strangers_.size() >= kMostStrangers) strangers_.erase(strangers_.begin());
  const auto id = next_id_++;
  // Edges only: if a forked child keeps the socket, closing it here ends no level.
  if (!poll_for(events_.value(), fd, EPOLLIN | EPOLLET, id)) return;
  strangers_.emplace(
      id, Stranger{.socket = std::move(socket),
                   .handshake = TcpHandshake::accepting(secret_, static_cast<std::uint32_t>(me_),
                                                        *nonce, encryption_),
                   .since = endpoint_now()});
}

/// No connection can be taken now. The oldest stranger gives back what it holds.
void TcpEndpoint::pause_accepting(const Error& why) {
  const bool no_descriptor = why.code == Errc::resource_exhausted;
  if (no_descriptor && kv::raise_descriptor_limit()) return;
  if (!strangers_.empty()) strangers_.erase(strangers_.begin());
  if (warned_ != why.message) {
    log::warn("tcp", "rank {} cannot take a connection of another rank, and tries again: {}{}", me_,
              why.message, no_descriptor ? "; " + kv::describe_descriptor_limit() : "");
  }
  warned_ = why.message;
  listen_for(0);
  paused_ = endpoint_now() + kPause;
}

void TcpEndpoint::resume_accepting() {
  listen_for(EPOLLIN);
  paused_.reset();
}

void TcpEndpoint::listen_for(std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = kListenerId}};
  for (const auto& listener : listeners_)
    epoll_ctl(events_.value(), EPOLL_CTL_MOD, listener.descriptor(), &event);
}

void TcpEndpoint::hear(std::uint64_t id) {
  const auto at = strangers_.find(id);
  if (at == strangers_.end()) return;
  auto& stranger = at->second;
  if (const auto status = read_from(stranger); !status) {
    // Only a rank of this job gets as far as a mismatch, so its user must read about it.
    if (status.error().code == Errc::mismatch) {
      log::warn("tcp", "another rank is refused: {}", status.error().message);
    } else {
      log::debug("tcp", "a connection is refused: {}", status.error().message);
    }
    strangers_.erase(at);
    return;
  }
  if (!stranger.handshake.open()) return;
  const auto edge = stranger.handshake.edge();
  auto wire = wire_after(stranger.handshake);
  auto socket = std::move(stranger.socket);
  strangers_.erase(at);
  if (!wire) return log::warn("tcp", "{}", wire.error().message);
  epoll_ctl(events_.value(), EPOLL_CTL_DEL, socket.value(), nullptr);
  welcome({.socket = std::move(socket), .wire = std::move(*wire)}, edge);
}

/// Fails when the connection is to be closed.
Status TcpEndpoint::read_from(Stranger& stranger) {
  auto& handshake = stranger.handshake;
  while (!handshake.open()) {
    std::array<std::uint8_t, 128> buffer;  // NOLINT: filled by recv
    const auto room = std::min(buffer.size(), handshake.room());
    const auto n = recv(stranger.socket.value(), buffer.data(), room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return {};
    if (n <= 0) return fail(Errc::peer_lost, "it has ended");
    const auto status = handshake.feed({buffer.data(), static_cast<std::size_t>(n)});
    const auto output = handshake.output();
    // A message of the handshake fits into an empty socket's buffer.
    if (send(stranger.socket.value(), output.data(), output.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(output.size()))
      return fail(Errc::peer_lost, "it takes no answer");
    handshake.sent(output.size());
    HORO_TRY_STATUS(status);
  }
  return {};
}

void TcpEndpoint::welcome(ProvenSocket socket, const TcpEdge& edge) {
  const auto set = sets_.find(edge.set);
  if (set == sets_.end()) {
    if (parked_.size() >= kMostParked) parked_.pop_front();
    parked_.push_back({.socket = std::move(socket), .edge = edge, .since = endpoint_now()});
    return;
  }
  const auto rank = static_cast<int>(edge.from);
  // Before the set has the socket: it may close it at once.
  const auto id = watch_locked(socket.socket.value(), edge.set, rank);
  if (!set->second->adopt(rank, edge.worker, std::move(socket))) watched_.erase(id);
}

}  // namespace horo::runtime
