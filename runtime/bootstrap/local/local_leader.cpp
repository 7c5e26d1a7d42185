// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>

#include "base/board_header.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "runtime/bootstrap/local/local_group.hpp"
#include "runtime/bootstrap/local/local_messages.hpp"
#include "runtime/bootstrap/local/local_socket.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr Duration kRetry = std::chrono::milliseconds(20);
constexpr std::size_t kMostUnknown = 64;  ///< Connections that have sent no hello.

/// One connection; `hello` is set once it has arrived.
struct Connection {
  UniqueFd socket;
  UniqueFd pidfd;
  std::optional<LocalHello> hello;
};

std::string list(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) {
    if (text.size() > 200) return text + ", ...";
    text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  }
  return text;
}

Result<UniqueFd> memfd_with(std::string_view bytes) {
  UniqueFd fd(memfd_create("horo-hosts", MFD_CLOEXEC));
  if (!fd) return fail_errno(errno, "memfd_create");
  while (!bytes.empty()) {
    const auto put = write(fd.value(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail_errno(errno, "writing the list of hosts");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return fd;
}

}  // namespace

class LocalLeader::Impl {
 public:
  Impl(LocalPlace place, UniqueFd listener, UniqueFd pidfd)
      : place_(std::move(place)), listener_(std::move(listener)), pidfd_(std::move(pidfd)) {}

  ~Impl() {
    // A forked child may hold the socket open: refuse connections to it.
    shutdown(listener_.value(), SHUT_RDWR);
  }

  Status gather(const WaitLimit& limit) {
    while (present() + 1 < place_.local_size) {
      HORO_TRY_STATUS(wait(limit));
      HORO_TRY_STATUS(look_for_deaths());
      accept_all();
      for (auto& connection : connections_) listen_to(connection);
      std::erase_if(connections_, [](const Connection& connection) { return !connection.socket; });
    }
    std::erase_if(connections_, [](const Connection& connection) { return !connection.hello; });
    std::sort(connections_.begin(), connections_.end(),
              [](const Connection& a, const Connection& b) {
                return a.hello->local_rank < b.hello->local_rank;
              });
    return {};
  }

  std::vector<Rank> ranks() const {
    std::vector<Rank> all{place_.rank};
    for (const auto& connection : connections_) all.emplace_back(connection.hello->rank);
    return all;
  }

  Status give(BoardHandover& handover) {
    handover.ranks = ranks();
    LocalWelcome welcome{.nonce = handover.nonce, .epoch = handover.epoch.value(), .ranks = {}};
    for (const auto rank : handover.ranks) welcome.ranks.push_back(rank.value());
    std::vector<int> shared{handover.board.value()};
    UniqueFd hosts;
    if (!handover.hosts.empty()) {
      HORO_TRY(hosts, memfd_with(handover.hosts));
      shared.push_back(hosts.value());
    }
    std::vector<int> pidfds{pidfd_.value()};
    for (const auto& connection : connections_) pidfds.push_back(connection.pidfd.value());
    for (auto& connection : connections_) {
      HORO_TRY_STATUS(send(connection, welcome, shared));
      for (std::size_t first = 0; first < pidfds.size(); first += kMostDescriptors) {
        const auto end = std::min(first + kMostDescriptors, pidfds.size());
        const std::vector<int> some(pidfds.begin() + static_cast<std::ptrdiff_t>(first),
                                    pidfds.begin() + static_cast<std::ptrdiff_t>(end));
        HORO_TRY_STATUS(
            send(connection, LocalPeers{.first = static_cast<std::uint32_t>(first)}, some));
      }
    }
    for (auto& connection : connections_) {
      handover.peers.push_back({.local_rank = LocalRank{connection.hello->local_rank},
                                .rank = Rank{connection.hello->rank},
                                .pidfd = std::move(connection.pidfd)});
    }
    return {};
  }

  void refuse(const Error& error) {
    const auto bytes = encode(LocalRefusal{.code = error.code, .message = error.message});
    for (const auto& connection : connections_)
      static_cast<void>(send_packet(connection.socket.value(), bytes));
  }

 private:
  int present() const {
    return static_cast<int>(
        std::count_if(connections_.begin(), connections_.end(),
                      [](const Connection& connection) { return connection.hello.has_value(); }));
  }

  /// The missing ranks. In a job of one host, local ranks are ranks.
  std::string absent() const {
    std::vector<int> missing;
    for (int r = 1; r < place_.local_size; ++r) {
      if (std::none_of(connections_.begin(), connections_.end(), [r](const Connection& connection) {
            return connection.hello && connection.hello->local_rank == r;
          }))
        missing.push_back(r);
    }
    const bool alone = place_.local_size == place_.size;
    return fmt::format("{}rank {}{}", alone ? "" : "local ", list(missing),
                       alone ? "" : fmt::format(" beside rank {}", place_.rank));
  }

  Error late() const {
    return {Errc::timed_out,
            fmt::format("{} did not call horo_init on this host in time; raise HORO_START_TIMEOUT "
                        "if it is only slow",
                        absent())};
  }

  Status wait(const WaitLimit& limit) {
    const auto& deadline = limit.deadline;
    std::vector<pollfd> watched{{.fd = listener_.value(), .events = POLLIN, .revents = 0},
                                {.fd = limit.cancel, .events = POLLIN, .revents = 0}};
    for (const auto& connection : connections_) {
      watched.push_back({.fd = connection.socket.value(), .events = POLLIN, .revents = 0});
      if (connection.pidfd)
        watched.push_back({.fd = connection.pidfd.value(), .events = POLLIN, .revents = 0});
    }
    const auto now = SteadyClock::instance().now();
    if (deadline.expired(now)) return Failure(late());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::min<Duration>(deadline.left(now), std::chrono::minutes(1)));
    if (poll(watched.data(), watched.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      return fail_errno(errno, "waiting for the ranks of this host");
    if (watched[1].revents != 0) return given_up();
    return {};
  }

  Status look_for_deaths() const {
    for (const auto& connection : connections_) {
      if (!connection.hello) continue;
      pollfd end{.fd = connection.pidfd.value(), .events = POLLIN, .revents = 0};
      if (poll(&end, 1, 0) != 1) continue;
      return fail(Errc::peer_lost, "rank {} ended before all ranks of this host had started",
                  connection.hello->rank);
    }
    return {};
  }

  void accept_all() {
    for (;;) {
      UniqueFd socket(accept4(listener_.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        // Without a descriptor, the connection stays in the queue: look again after a moment.
        if (errno != EAGAIN && errno != EINTR)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return;
      }
      const auto unknown = connections_.size() - static_cast<std::size_t>(present());
      if (unknown >= kMostUnknown || !check_peer(socket.value())) continue;
      const auto greeting = encode(LocalGreeting{.version = version_code()});
      if (!send_packet(socket.value(), greeting, {pidfd_.value()})) continue;
      connections_.push_back({.socket = std::move(socket), .pidfd = {}, .hello = {}});
    }
  }

  /// Takes a message; closes a connection that has ended or sends something malformed.
  void listen_to(Connection& connection) {
    auto packet = receive_packet(connection.socket.value());
    if (!packet) {
      if (packet.error().code == Errc::in_progress) return;
      connection = Connection{};
      return;
    }
    auto message = decode(packet->bytes);
    if (!message) return turn_away(connection, message.error());
    if (std::holds_alternative<LocalQuestion>(*message) && connection.hello)
      return turn_away(connection, late());
    const auto* hello = std::get_if<LocalHello>(&*message);
    if (hello == nullptr || connection.hello || packet->descriptors.size() != 1) {
      return turn_away(connection,
                       {Errc::protocol, "this is not how a rank of horo introduces itself"});
    }
    if (auto fits = check(*hello); !fits) return turn_away(connection, fits.error());
    connection.hello = *hello;
    connection.pidfd = std::move(packet->descriptors.front());
  }

  Status check(const LocalHello& hello) const {
    if (hello.version != version_code()) {
      return fail(Errc::version_mismatch,
                  "rank {} has libhoro of version code {}, rank {} has {}; use one for all ranks",
                  hello.rank, hello.version, place_.rank, version_code());
    }
    const bool fits = hello.size == place_.size && hello.local_size == place_.local_size &&
                      hello.local_rank > 0 && hello.local_rank < hello.local_size &&
                      hello.rank >= 0 && hello.rank < hello.size &&
                      hello.rank != place_.rank.value();
    if (!fits) {
      return fail(Errc::mismatch,
                  "rank {} of {} (local rank {} of {}) does not belong to the job of rank {} of {} "
                  "with {} ranks on this host; give each job another HORO_JOB_ID",
                  hello.rank, hello.size, hello.local_rank, hello.local_size, place_.rank,
                  place_.size, place_.local_size);
    }
    for (const auto& other : connections_) {
      if (!other.hello) continue;
      if (other.hello->local_rank == hello.local_rank || other.hello->rank == hello.rank) {
        return fail(
            Errc::duplicate,
            "rank {} is already connected, as process {}; two jobs that run at the same time need "
            "different HORO_JOB_IDs",
            hello.rank, peer_pid(other.socket.value()));
      }
    }
    return {};
  }

  static void turn_away(Connection& connection, const Error& error) {
    static_cast<void>(
        send_packet(connection.socket.value(),
                    encode(LocalRefusal{.code = error.code, .message = error.message})));
    connection = Connection{};
  }

  static Status send(const Connection& connection, const LocalMessage& message,
                     const std::vector<int>& fds) {
    return send_packet(connection.socket.value(), encode(message), fds)
        .context(fmt::format("handing the board to rank {}", connection.hello->rank));
  }

  const LocalPlace place_;
  const UniqueFd listener_;
  const UniqueFd pidfd_;
  std::vector<Connection> connections_;
};

LocalLeader::LocalLeader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LocalLeader::~LocalLeader() = default;
LocalLeader::LocalLeader(LocalLeader&&) noexcept = default;

Result<LocalLeader> LocalLeader::open(const LocalPlace& place, const WaitLimit& limit) {
  const auto name = socket_name(place.meeting_place);
  auto listener = listen_at(name);
  // A child that was forked in the last epoch may still hold the name.
  while (!listener && listener.error().code == Errc::unavailable &&
         !limit.deadline.expired(SteadyClock::instance().now())) {
    if (!pause_for(kRetry, limit)) return given_up();
    listener = listen_at(name);
  }
  if (!listener) return Failure(std::move(listener).error());
  HORO_TRY(UniqueFd pidfd, own_pidfd());
  return LocalLeader(std::make_unique<Impl>(place, std::move(listener).value(), std::move(pidfd)));
}

Status LocalLeader::gather(const WaitLimit& limit) {
  auto status = impl_->gather(limit);
  if (!status) impl_->refuse(status.error());
  return status;
}

std::vector<Rank> LocalLeader::ranks() const {
  return impl_->ranks();
}

Status LocalLeader::give(BoardHandover& handover) {
  return impl_->give(handover);
}

void LocalLeader::refuse(const Error& error) {
  impl_->refuse(error);
}

}  // namespace horo::runtime::bootstrap
