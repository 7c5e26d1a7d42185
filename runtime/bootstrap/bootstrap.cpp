// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/bootstrap.hpp"

#include <array>
#include <cerrno>
#include <sys/random.h>
#include <unistd.h>

#include "base/board_header.hpp"
#include "runtime/bootstrap/agent_bridge.hpp"
#include "runtime/bootstrap/inherited_board.hpp"
#include "runtime/bootstrap/local_group.hpp"
#include "runtime/bootstrap/local_socket.hpp"
#include "runtime/bootstrap/peer_watch.hpp"

namespace horo::runtime::bootstrap {

namespace {

std::string this_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// A fresh board in a gift that is otherwise empty.
Result<Gift> make_gift(int local_size, Epoch epoch, const kv::Secret& secret) {
  Gift gift;
  gift.epoch = epoch;
  if (getrandom(&gift.nonce, sizeof gift.nonce, 0) != sizeof gift.nonce)
    return fail_errno(errno, "drawing the board's nonce");
  HORO_TRY(const int fd,
           make_board(
               {.local_size = local_size, .nonce = gift.nonce, .epoch = epoch, .secret = secret}));
  gift.board = UniqueFd(fd);
  return gift;
}

/// Where this rank stands on the board of its agent.
Result<RankState> state_on(int board, LocalRank me, int* pid) {
  HORO_TRY(BoardHeader* const header, map_board_header(board));
  auto state = RankState::dead;
  if (me.index() < header->local_size) {
    state = header->slot(me).state.load(std::memory_order_seq_cst);
    *pid = static_cast<int>(header->slot(me).pid.load(std::memory_order_relaxed));
  }
  unmap_board_header(header);
  return state;
}

}  // namespace

class Bootstrap::Impl {
 public:
  Result<Meeting> meet(const Lookup& environment, const Deadline& deadline) {
    HORO_TRY(Identity identity, read_identity(environment));
    if (identity.worker.hostname.empty()) identity.worker.hostname = this_host();
    if (identity.starter == Starter::horo_run) return meet_under_agent(identity, deadline);
    HORO_TRY_STATUS(settle_place(identity));
    HORO_TRY(Gift gift, share_board(identity, deadline));
    auto meeting = meeting_of(identity, gift);
    if (!gift.peers.empty()) {
      HORO_TRY(meeting.vigil, watch_peers(meeting.board.value(), std::move(gift.peers),
                                          meeting.identity.hostname));
    }
    return meeting;
  }

 private:
  /// The agent's board serves one epoch; those after it are handed over among the ranks.
  Result<Meeting> meet_under_agent(const Identity& identity, const Deadline& deadline) {
    const auto& worker = identity.worker;
    HORO_TRY(UniqueFd agents, open_inherited_board(worker));
    int pid = 0;
    HORO_TRY(const auto state, state_on(agents.value(), worker.local_rank, &pid));
    if (worker.local_size != worker.size) {
      return fail(
          Errc::unsupported,
          "{} ranks on several hosts; this version's runtime connects the ranks of one host",
          worker.size);
    }
    if (state == RankState::absent) {
      Gift gift;
      gift.board = std::move(agents);
      return meeting_of(identity, gift);
    }
    if (state != RankState::detached) {
      return fail(Errc::unavailable,
                  "rank {} of this job is process {} already; a rank joins once at a time",
                  worker.rank, pid);
    }
    HORO_TRY(Gift gift, share_board(identity, deadline));
    auto meeting = meeting_of(identity, gift);
    HORO_TRY(meeting.vigil,
             bridge_to_agent(agents.value(), meeting.board.value(), worker.local_rank));
    return meeting;
  }

  /// Completes what the environment left open about this host.
  static Status settle_place(Identity& identity) {
    auto& worker = identity.worker;
    if (worker.size == 1) return {};
    if (!identity.local_known) {
      worker.local_rank = LocalRank{worker.rank.value()};
      worker.local_size = worker.size;
    }
    if (worker.local_size != worker.size) {
      return fail(
          Errc::unsupported,
          "{} ranks on several hosts; this version's runtime connects the ranks of one host",
          worker.size);
    }
    if (identity.pmi_fd >= 0 && peer_pid(identity.pmi_fd) > 0)
      identity.meeting_place += fmt::format("manager={};", peer_pid(identity.pmi_fd));
    if (!identity.meeting_place.empty()) return {};
    return fail(Errc::invalid_argument,
                "rank {} of {} was started by {}, but nothing tells its job from others of this "
                "user; set HORO_JOB_ID, the same on all ranks, or MASTER_ADDR and MASTER_PORT",
                worker.rank, worker.size, name(identity.starter));
  }

  Result<Gift> share_board(const Identity& identity, const Deadline& deadline) {
    const auto& worker = identity.worker;
    if (worker.local_size == 1) return make_gift(1, next_epoch(), {});
    const LocalPlace place{.meeting_place = identity.meeting_place,
                           .rank = worker.rank,
                           .size = worker.size,
                           .local_rank = worker.local_rank,
                           .local_size = worker.local_size};
    if (worker.local_rank != LocalRank{0}) return join_local(place, deadline);
    HORO_TRY(LocalLeader leader, LocalLeader::open(place, deadline));
    HORO_TRY_STATUS(leader.gather(deadline));
    auto gift = make_gift(worker.local_size, next_epoch(), {});
    if (!gift) {
      leader.refuse(gift.error());
      return gift;
    }
    HORO_TRY_STATUS(leader.give(*gift));
    return gift;
  }

  static Meeting meeting_of(const Identity& identity, Gift& gift) {
    Meeting meeting;
    meeting.identity = identity.worker;
    meeting.board = std::move(gift.board);
    meeting.epoch = gift.epoch;
    meeting.hosts.push_back({.name = identity.worker.hostname,
                             .address = {},
                             .addresses = {},
                             .ranks = std::move(gift.ranks)});
    return meeting;
  }

  Epoch next_epoch() { return Epoch{++epochs_}; }

  std::uint64_t epochs_ = 0;  ///< Boards that this process has made.
};

Bootstrap::Bootstrap() : impl_(std::make_unique<Impl>()) {}

Bootstrap::~Bootstrap() = default;

Result<Meeting> Bootstrap::meet(const Lookup& environment, const Deadline& deadline) {
  return impl_->meet(environment, deadline);
}

}  // namespace horo::runtime::bootstrap
