// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/worker_sockets.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace horo::runtime {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

constexpr std::uint64_t kBellId = ~std::uint64_t{0};
constexpr int kMostTries = 20;
// A worker that waits looks at the clock this often. If much more time has passed, the process was
// stopped, and that time does not count against its peers.
constexpr Duration kLook = 1s;
constexpr Duration kLookForLoss = 100ms;

bool register_in(const UniqueFd& events, int fd, std::uint32_t what, std::uint64_t id) {
  epoll_event event{.events = what | EPOLLET, .data = {.u64 = id}};
  return epoll_ctl(events.value(), EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<WorkerSockets>> WorkerSockets::make(TcpPeers& peers, std::uint32_t number) {
  UniqueFd events(epoll_create1(EPOLL_CLOEXEC));
  if (!events) return fail_errno(errno, "epoll_create1");
  if (!register_in(events, peers.bell.value(), EPOLLIN, kBellId))
    return fail_errno(errno, "epoll_ctl");
  return std::unique_ptr<WorkerSockets>(new WorkerSockets(peers, number, std::move(events)));
}

WorkerSockets::WorkerSockets(TcpPeers& peers, std::uint32_t number, UniqueFd events)
    : peers_(peers), number_(number), events_(std::move(events)), channels_(peers.members.size()) {}

WorkerSockets::~WorkerSockets() = default;

// -- Connections --------------------------------------------------------------------------------

void WorkerSockets::engage(int peer) {
  if (std::find(busy_.begin(), busy_.end(), peer) == busy_.end()) busy_.push_back(peer);
  // The lower rank connects, so that there is one connection.
  if (channel(peer).state() == TcpChannel::State::none && !channel(peer).wants_retry() &&
      peers_.rank_of(peers_.position) < peers_.rank_of(peer))
    connect(peer);
}

void WorkerSockets::connect(int peer) {
  auto& to = channel(peer);
  const auto nonce = kv::make_nonce();
  if (!nonce) return to.lose(nonce.error().message);
  const TcpEdge edge{.set = peers_.token,
                     .from = static_cast<std::uint32_t>(peers_.rank_of(peers_.position)),
                     .to = static_cast<std::uint32_t>(peers_.rank_of(peer)),
                     .worker = number_};
  forget_socket(to.descriptor());
  const bool several = peers_.rails.size() > 1;
  to.connect(address_of(peer),
             TcpHandshake::connecting(peers_.secret, edge, *nonce, peers_.encryption),
             several ? peers_.rails[rail()].address : "");
  note_socket(peer);
}

/// The channel has a new socket.
void WorkerSockets::note_socket(int peer) {
  const int socket = channel(peer).descriptor();
  if (socket < 0) return;
  if (!register_in(events_, socket, EPOLLIN | EPOLLOUT | EPOLLRDHUP,
                   static_cast<std::uint64_t>(peer)))
    return channel(peer).lose(std::generic_category().message(errno));
  const MutexLock lock(mutex_);
  open_.insert(socket);
  if (hung_up_) shutdown(socket, SHUT_RDWR);
}

/// Before the channel closes it: another thread must not shut down a descriptor of somebody else.
void WorkerSockets::forget_socket(int socket) {
  const MutexLock lock(mutex_);
  open_.erase(socket);
}

bool WorkerSockets::adopt(int peer, ProvenSocket socket) {
  {
    const MutexLock lock(mutex_);
    if (hung_up_) return false;
    adopted_.emplace_back(peer, std::move(socket));
    has_adopted_.store(true);
  }
  wake();
  return true;
}

void WorkerSockets::take_adopted() {
  if (!has_adopted_.load(std::memory_order_relaxed)) return;
  std::vector<std::pair<int, ProvenSocket>> adopted;
  {
    const MutexLock lock(mutex_);
    has_adopted_.store(false);
    adopted.swap(adopted_);
  }
  for (auto& [peer, socket] : adopted) {
    if (channel(peer).state() != TcpChannel::State::none) continue;
    channel(peer).adopt(std::move(socket));
    note_socket(peer);
  }
}

// -- Messages -----------------------------------------------------------------------------------

void WorkerSockets::send(TcpTransfer& transfer) {
  take_adopted();
  engage(transfer.message.peer);
  channel(transfer.message.peer).post_send(transfer);
}

void WorkerSockets::receive(TcpTransfer& transfer) {
  engage(transfer.message.peer);
  channel(transfer.message.peer).post_receive(transfer);
}

void WorkerSockets::advance(int peer) {
  auto& one = channel(peer);
  const bool made = one.state() == TcpChannel::State::connecting;
  one.advance();
  if (made && one.state() == TcpChannel::State::open)
    peers_.watch(one.descriptor(), peers_.rank_of(peer));
  if (one.wants_retry() && one.tries() >= kMostTries) one.lose(one.why());
  if (one.state() != TcpChannel::State::none || one.wants_retry() || !peers_.has_ended(peer))
    return;
  take_adopted();  // Connections may have come before the end.
  if (one.state() == TcpChannel::State::none) one.lose("its connection has ended");
}

void WorkerSockets::advance_all() {
  for (const int peer : busy_) advance(peer);
  std::erase_if(busy_, [this](int peer) { return channel(peer).idle(); });
}

/// Connects again where a try has failed and enough time has passed. Returns the time until the
/// next one is due.
Duration WorkerSockets::retry(TimePoint now) {
  auto next = Duration::max();
  for (const int peer : busy_) {
    const auto& one = channel(peer);
    if (!one.wants_retry()) continue;
    const auto pause = std::min<Duration>(1ms * (1 << std::min(one.tries(), 9)), 500ms);
    auto& due = retries_[peer];
    if (due == TimePoint()) due = now + pause;
    if (now >= due) {
      retries_.erase(peer);
      connect(peer);
      return Duration::zero();
    }
    next = std::min(next, due - now);
  }
  return next;
}

void WorkerSockets::sleep(Duration limit) {
  constexpr Duration kLongest = 1h;
  std::array<epoll_event, 64> found;  // NOLINT: filled by epoll_wait
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min(limit, kLongest));
  const int count = epoll_wait(events_.value(), found.data(), static_cast<int>(found.size()),
                               limit == Duration::max() ? -1 : static_cast<int>(left.count()));
  for (int i = 0; i < count; ++i) {
    const auto& event = found[static_cast<std::size_t>(i)];
    if (event.data.u64 != kBellId)
      channel(static_cast<int>(event.data.u64)).note_events(event.events);
  }
}

Status WorkerSockets::wait(const TcpTransfer& transfer) {
  const int peer = transfer.message.peer;
  const auto& awaited = channel(peer);
  std::optional<TimePoint> since;
  auto moves = awaited.moves();
  while (!transfer.done()) {
    if (interrupted_.load()) return fail(Errc::cancelled, "the backend stops");
    take_adopted();
    advance_all();
    if (transfer.done()) break;
    if (awaited.state() == TcpChannel::State::lost) return lost(peer);
    if (peers_.lost && peers_.lost())
      return fail(Errc::peer_lost, "a rank was lost while ranks connected");
    const auto now = SteadyClock::instance().now();
    if (!since || moves != awaited.moves()) {
      since = now;
      moves = awaited.moves();
    }
    const bool limited = peers_.timeout != Duration::zero();
    if (limited && now - *since >= peers_.timeout) {
      channel(peer).lose(describe_silence(peer));
      return lost(peer);
    }
    auto limit = limited ? std::min(kLook, *since + peers_.timeout - now) : Duration::max();
    if (peers_.lost) limit = std::min(limit, kLookForLoss);
    limit = std::min(limit, retry(now));
    if (limit > Duration::zero()) sleep(limit);
    if (SteadyClock::instance().now() - now > 2 * kLook && limited) since.reset();
  }
  return {};
}

std::string WorkerSockets::describe_silence(int peer) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(peers_.timeout).count();
  auto& silent = channel(peer);
  if (silent.state() == TcpChannel::State::none) {
    return fmt::format(
        "it has not connected to this rank at {} for {} ms; a firewall may keep its host from that "
        "port, or the rank may be stopped",
        kv::to_string(address_of(peers_.position)), ms);
  }
  if (silent.state() == TcpChannel::State::connecting) {
    return fmt::format(
        "it has not answered {} for {} ms; {}", silent.describe_try(), ms,
        silent.is_reached()
            ? "it may be stopped, or have no file descriptors left (ulimit -n)"
            : "a firewall may keep this host from that port, or the other host may be down");
  }
  return fmt::format("it was silent for {} ms; raise {} if it is only slow", ms, peers_.patience);
}

Failure WorkerSockets::lost(int peer) const {
  const auto& address = address_of(peer);
  return fail(Errc::peer_lost, "rank {}{} does not answer over TCP{}: {}", peers_.rank_of(peer),
              address.port != 0 ? " at " + kv::to_string(address) : "", rail_text(),
              channels_[static_cast<std::size_t>(peer)].why());
}

/// " through interface eth1" if there is more than one.
std::string WorkerSockets::rail_text() const {
  if (peers_.rails.size() == 1) return "";
  return " through interface " + peers_.rails[rail()].interface;
}

// -- Ends ---------------------------------------------------------------------------------------

void WorkerSockets::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(peers_.bell.value(), &one, sizeof one);
}

void WorkerSockets::interrupt() {
  interrupted_.store(true);
  wake();
}

void WorkerSockets::hang_up() {
  const MutexLock lock(mutex_);
  hung_up_ = true;
  adopted_.clear();
  for (const int socket : open_) shutdown(socket, SHUT_RDWR);
}

}  // namespace horo::runtime
