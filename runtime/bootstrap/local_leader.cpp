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
#include "runtime/bootstrap/local_group.hpp"
#include "runtime/bootstrap/local_socket.hpp"
#include "runtime/bootstrap/wire.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr Duration kRetry = std::chrono::milliseconds(20);
constexpr std::size_t kStrangers = 64;  ///< Connections that have not said who they are.

const Clock& steady() {
  return SteadyClock::instance();
}

/// One connection; `place` is set once its hello has come.
struct Guest {
  UniqueFd socket;
  UniqueFd pidfd;
  std::optional<Hello> hello;
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
    // A forked child may hold the socket open; nobody is to wait at it.
    shutdown(listener_.value(), SHUT_RDWR);
  }

  Status gather(const Deadline& deadline) {
    while (present() + 1 < place_.local_size) {
      HORO_TRY_STATUS(wait(deadline));
      HORO_TRY_STATUS(look_for_deaths());
      accept_all();
      for (auto& guest : guests_) listen_to(guest);
      std::erase_if(guests_, [](const Guest& guest) { return !guest.socket; });
    }
    std::erase_if(guests_, [](const Guest& guest) { return !guest.hello; });
    std::sort(guests_.begin(), guests_.end(), [](const Guest& a, const Guest& b) {
      return a.hello->local_rank < b.hello->local_rank;
    });
    return {};
  }

  std::vector<Rank> ranks() const {
    std::vector<Rank> all{place_.rank};
    for (const auto& guest : guests_) all.emplace_back(guest.hello->rank);
    return all;
  }

  Status give(Gift& gift) {
    gift.ranks = ranks();
    Welcome welcome{.nonce = gift.nonce, .epoch = gift.epoch.value(), .ranks = {}};
    for (const auto rank : gift.ranks) welcome.ranks.push_back(rank.value());
    std::vector<int> shared{gift.board.value()};
    UniqueFd hosts;
    if (!gift.hosts.empty()) {
      HORO_TRY(hosts, memfd_with(gift.hosts));
      shared.push_back(hosts.value());
    }
    std::vector<int> pidfds{pidfd_.value()};
    for (const auto& guest : guests_) pidfds.push_back(guest.pidfd.value());
    for (auto& guest : guests_) {
      HORO_TRY_STATUS(send(guest, welcome, shared));
      for (std::size_t first = 0; first < pidfds.size(); first += kMostDescriptors) {
        const auto end = std::min(first + kMostDescriptors, pidfds.size());
        const std::vector<int> some(pidfds.begin() + static_cast<std::ptrdiff_t>(first),
                                    pidfds.begin() + static_cast<std::ptrdiff_t>(end));
        HORO_TRY_STATUS(send(guest, Peers{.first = static_cast<std::uint32_t>(first)}, some));
      }
    }
    for (auto& guest : guests_) {
      gift.peers.push_back({.local_rank = LocalRank{guest.hello->local_rank},
                            .rank = Rank{guest.hello->rank},
                            .pidfd = std::move(guest.pidfd)});
    }
    return {};
  }

  void refuse(const Error& error) {
    const auto bytes = encode(Refusal{.code = error.code, .message = error.message});
    for (const auto& guest : guests_) static_cast<void>(send_packet(guest.socket.value(), bytes));
  }

 private:
  int present() const {
    return static_cast<int>(std::count_if(guests_.begin(), guests_.end(), [](const Guest& guest) {
      return guest.hello.has_value();
    }));
  }

  /// Who has not come; on one host local ranks are ranks.
  std::string absent() const {
    std::vector<int> missing;
    for (int r = 1; r < place_.local_size; ++r) {
      if (std::none_of(guests_.begin(), guests_.end(), [r](const Guest& guest) {
            return guest.hello && guest.hello->local_rank == r;
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

  Status wait(const Deadline& deadline) {
    std::vector<pollfd> watched{{.fd = listener_.value(), .events = POLLIN, .revents = 0}};
    for (const auto& guest : guests_) {
      watched.push_back({.fd = guest.socket.value(), .events = POLLIN, .revents = 0});
      if (guest.pidfd)
        watched.push_back({.fd = guest.pidfd.value(), .events = POLLIN, .revents = 0});
    }
    const auto now = steady().now();
    if (deadline.expired(now)) return Failure(late());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::min<Duration>(deadline.left(now), std::chrono::minutes(1)));
    if (poll(watched.data(), watched.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      return fail_errno(errno, "waiting for the ranks of this host");
    return {};
  }

  Status look_for_deaths() const {
    for (const auto& guest : guests_) {
      if (!guest.hello) continue;
      pollfd end{.fd = guest.pidfd.value(), .events = POLLIN, .revents = 0};
      if (poll(&end, 1, 0) != 1) continue;
      return fail(Errc::peer_lost, "rank {} ended before all ranks of this host had started",
                  guest.hello->rank);
    }
    return {};
  }

  void accept_all() {
    for (;;) {
      UniqueFd socket(accept4(listener_.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      const auto strangers = guests_.size() - static_cast<std::size_t>(present());
      if (strangers >= kStrangers || !check_peer(socket.value())) continue;
      const auto greeting = encode(Greeting{.version = version_code()});
      if (!send_packet(socket.value(), greeting, {pidfd_.value()})) continue;
      guests_.push_back({.socket = std::move(socket), .pidfd = {}, .hello = {}});
    }
  }

  /// Takes what has come; closes the socket of one that is gone or talks nonsense.
  void listen_to(Guest& guest) {
    auto packet = receive_packet(guest.socket.value());
    if (!packet) {
      if (packet.error().code == Errc::in_progress) return;
      guest = Guest{};
      return;
    }
    auto message = decode(packet->bytes);
    if (!message) return turn_away(guest, message.error());
    if (std::holds_alternative<Question>(*message) && guest.hello) return turn_away(guest, late());
    const auto* hello = std::get_if<Hello>(&*message);
    if (hello == nullptr || guest.hello || packet->descriptors.size() != 1)
      return turn_away(guest, {Errc::protocol, "this is not how a rank of horo introduces itself"});
    if (auto fits = check(*hello); !fits) return turn_away(guest, fits.error());
    guest.hello = *hello;
    guest.pidfd = std::move(packet->descriptors.front());
  }

  Status check(const Hello& hello) const {
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
    for (const auto& other : guests_) {
      if (!other.hello) continue;
      if (other.hello->local_rank == hello.local_rank || other.hello->rank == hello.rank) {
        return fail(
            Errc::duplicate,
            "rank {} has come already as process {}; two jobs that run at the same time need "
            "different HORO_JOB_IDs",
            hello.rank, peer_pid(other.socket.value()));
      }
    }
    return {};
  }

  static void turn_away(Guest& guest, const Error& error) {
    static_cast<void>(send_packet(guest.socket.value(),
                                  encode(Refusal{.code = error.code, .message = error.message})));
    guest = Guest{};
  }

  static Status send(const Guest& guest, const Message& message, const std::vector<int>& fds) {
    return send_packet(guest.socket.value(), encode(message), fds)
        .context(fmt::format("handing the board to rank {}", guest.hello->rank));
  }

  const LocalPlace place_;
  const UniqueFd listener_;
  const UniqueFd pidfd_;
  std::vector<Guest> guests_;
};

LocalLeader::LocalLeader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LocalLeader::~LocalLeader() = default;
LocalLeader::LocalLeader(LocalLeader&&) noexcept = default;

Result<LocalLeader> LocalLeader::open(const LocalPlace& place, const Deadline& deadline) {
  const auto name = socket_name(place.meeting_place);
  auto listener = listen_at(name);
  // The name may still be held by a child that was forked during the last meeting.
  while (!listener && listener.error().code == Errc::unavailable &&
         !deadline.expired(steady().now())) {
    std::this_thread::sleep_for(std::min<Duration>(kRetry, deadline.left(steady().now())));
    listener = listen_at(name);
  }
  if (!listener) return Failure(std::move(listener).error());
  HORO_TRY(UniqueFd pidfd, own_pidfd());
  return LocalLeader(std::make_unique<Impl>(place, std::move(listener).value(), std::move(pidfd)));
}

Status LocalLeader::gather(const Deadline& deadline) {
  auto status = impl_->gather(deadline);
  if (!status) impl_->refuse(status.error());
  return status;
}

std::vector<Rank> LocalLeader::ranks() const {
  return impl_->ranks();
}

Status LocalLeader::give(Gift& gift) {
  return impl_->give(gift);
}

void LocalLeader::refuse(const Error& error) {
  impl_->refuse(error);
}

}  // namespace horo::runtime::bootstrap
