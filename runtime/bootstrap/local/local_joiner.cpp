// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <optional>
#include <poll.h>
#include <sys/stat.h>
#include <thread>

#include "base/board_header.hpp"
#include "base/version.hpp"
#include "runtime/bootstrap/local/local_group.hpp"
#include "runtime/bootstrap/local/local_messages.hpp"
#include "runtime/bootstrap/local/local_socket.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr Duration kFirstRetry = std::chrono::milliseconds(1);
constexpr Duration kLongestRetry = std::chrono::milliseconds(50);
/// Extra time for the first rank, whose own time ends at about the same moment and whose error
/// names the missing ranks; then again for its answer to a question.
constexpr Duration kLeaderReplyTime = std::chrono::seconds(1);
constexpr off_t kMostHostBytes = off_t{64} << 20U;

/// Tries again, less and less often, because the kernel cannot wait for a name to exist.
Result<UniqueFd> connect_in_time(const LocalPlace& place, const WaitLimit& limit) {
  const auto name = socket_name(place.meeting_place);
  for (auto pause = kFirstRetry;; pause = std::min(pause * 2, kLongestRetry)) {
    auto socket = connect_to(name);
    if (socket) {
      HORO_TRY_STATUS(check_peer(socket->value()));
      return socket;
    }
    const auto code = socket.error().code;
    if (code != Errc::not_found && code != Errc::unavailable)
      return Failure(std::move(socket).error());
    const auto now = SteadyClock::instance().now();
    if (limit.deadline.expired(now)) {
      return fail(Errc::timed_out,
                  "rank {} waited for {}, which did not call horo_init on this host; raise "
                  "HORO_START_TIMEOUT if it is only slow",
                  place.rank,
                  place.size == place.local_size ? "rank 0" : "the first rank of this host");
    }
    if (!pause_for(pause, limit)) return given_up();
  }
}

Result<std::string> content_of(int fd) {
  struct stat status {};

  if (fstat(fd, &status) != 0) return fail_errno(errno, "the list of hosts");
  if (!S_ISREG(status.st_mode) || status.st_size > kMostHostBytes)
    return fail(Errc::protocol, "the list of hosts has {} bytes", status.st_size);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t at = 0; at < bytes.size();) {
    const auto got = pread(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(Errc::protocol, "the list of hosts ends early");
    at += static_cast<std::size_t>(got);
  }
  return bytes;
}

class Joiner {
 public:
  Joiner(const LocalPlace& place, UniqueFd socket) : place_(place), socket_(std::move(socket)) {}

  Result<BoardHandover> join(const WaitLimit& limit) {
    HORO_TRY(UniqueFd me, own_pidfd());
    HORO_TRY(Packet greeting, next(limit));
    HORO_TRY(const LocalMessage first, understand(greeting));
    const auto* told = std::get_if<LocalGreeting>(&first);
    if (told == nullptr || greeting.descriptors.size() != 1) return nonsense();
    leader_ = std::move(greeting.descriptors.front());
    const LocalHello hello{.version = version_code(),
                           .rank = place_.rank.value(),
                           .size = place_.size,
                           .local_rank = place_.local_rank.value(),
                           .local_size = place_.local_size};
    HORO_TRY_STATUS(send_packet(socket_.value(), encode(hello), {me.value()}).context(where()));
    HORO_TRY(Packet packet, next(limit));
    HORO_TRY(const LocalMessage answer, understand(packet));
    const auto* welcome = std::get_if<LocalWelcome>(&answer);
    if (welcome == nullptr) return nonsense();
    HORO_TRY(BoardHandover handover, open(*welcome, packet));
    HORO_TRY_STATUS(take_peers(handover, limit));
    return handover;
  }

 private:
  std::string where() const {
    return place_.size == place_.local_size ? "meeting rank 0"
                                            : "meeting the first rank of this host";
  }

  static Failure nonsense() {
    return fail(Errc::protocol,
                "the first rank of this host gave an answer that does not match the question");
  }

  /// The next packet; asks which ranks are missing when the time is over.
  Result<Packet> next(const WaitLimit& limit) {
    const auto& deadline = limit.deadline;
    auto packet = next_until(
        {deadline.is_never() ? deadline : Deadline::at(deadline.when() + kLeaderReplyTime),
         limit.cancel});
    if (packet || packet.error().code != Errc::timed_out) return packet;
    static_cast<void>(send_packet(socket_.value(), encode(LocalQuestion{})));
    auto answer = next_until(Deadline::in(SteadyClock::instance(), kLeaderReplyTime));
    return answer ? std::move(answer) : std::move(packet);
  }

  Result<Packet> next_until(const WaitLimit& limit) {
    const auto& deadline = limit.deadline;
    for (;;) {
      auto packet = receive_packet(socket_.value());
      if (packet || packet.error().code != Errc::in_progress)
        return std::move(packet).context(where());
      pollfd watched[3] = {{.fd = socket_.value(), .events = POLLIN, .revents = 0},
                           {.fd = leader_.value(), .events = POLLIN, .revents = 0},
                           {.fd = limit.cancel, .events = POLLIN, .revents = 0}};
      const auto now = SteadyClock::instance().now();
      if (deadline.expired(now)) {
        return fail(Errc::timed_out,
                    "rank {} waited for the first rank of this host, which waits for others; raise "
                    "HORO_START_TIMEOUT if they are only slow",
                    place_.rank);
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          std::min<Duration>(deadline.left(now), std::chrono::minutes(1)));
      poll(watched, 3, static_cast<int>(left.count()));
      if (watched[2].revents != 0) return given_up();
      if ((watched[1].revents & POLLIN) != 0 && (watched[0].revents & POLLIN) == 0) {
        return fail(Errc::peer_lost, "{} ended before all ranks of this host had started",
                    place_.size == place_.local_size ? "rank 0" : "the first rank of this host");
      }
    }
  }

  static Result<LocalMessage> understand(const Packet& packet) {
    HORO_TRY(LocalMessage message, decode(packet.bytes));
    if (const auto* refusal = std::get_if<LocalRefusal>(&message))
      return fail(refusal->code, "{}", refusal->message);
    return message;
  }

  Result<BoardHandover> open(const LocalWelcome& welcome, Packet& packet) const {
    const auto count = packet.descriptors.size();
    if (welcome.ranks.size() != static_cast<std::size_t>(place_.local_size) || count < 1 ||
        count > 2 || welcome.ranks[place_.local_rank.index()] != place_.rank.value())
      return nonsense();
    BoardHandover handover{.board = std::move(packet.descriptors[0]),
                           .nonce = welcome.nonce,
                           .epoch = Epoch{welcome.epoch},
                           .hosts = {},
                           .peers = {},
                           .ranks = {}};
    for (const auto rank : welcome.ranks) handover.ranks.emplace_back(rank);
    if (count == 2) {
      HORO_TRY(handover.hosts, content_of(packet.descriptors[1].value()));
    }
    HORO_TRY(const auto header, map_board_header(handover.board.value()));
    const bool same = header->nonce == welcome.nonce;
    unmap_board_header(header);
    if (!same) return fail(Errc::protocol, "the board that was handed over is another job's");
    return handover;
  }

  Status take_peers(BoardHandover& handover, const WaitLimit& limit) {
    for (std::size_t have = 0; have < handover.ranks.size();) {
      HORO_TRY(Packet packet, next(limit));
      HORO_TRY(const LocalMessage message, understand(packet));
      const auto* peers = std::get_if<LocalPeers>(&message);
      if (peers == nullptr || peers->first != have || packet.descriptors.empty() ||
          packet.descriptors.size() > handover.ranks.size() - have)
        return nonsense();
      for (auto& pidfd : packet.descriptors) {
        const auto local = static_cast<int>(have++);
        if (local == place_.local_rank.value()) continue;
        handover.peers.push_back({.local_rank = LocalRank{local},
                                  .rank = handover.ranks[static_cast<std::size_t>(local)],
                                  .pidfd = std::move(pidfd)});
      }
    }
    return {};
  }

  const LocalPlace& place_;
  UniqueFd socket_;
  UniqueFd leader_;  ///< Pidfd of the first rank, once its greeting has arrived.
};

}  // namespace

Result<BoardHandover> join_local(const LocalPlace& place, const WaitLimit& limit) {
  HORO_TRY(UniqueFd socket, connect_in_time(place, limit));
  return Joiner(place, std::move(socket)).join(limit);
}

}  // namespace horo::runtime::bootstrap
