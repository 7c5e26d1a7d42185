// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/bootstrap.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sys/random.h>
#include <unistd.h>

#include "base/board_header.hpp"
#include "runtime/bootstrap/local/agent_bridge.hpp"
#include "runtime/bootstrap/local/inherited_board.hpp"
#include "runtime/bootstrap/local/local_group.hpp"
#include "runtime/bootstrap/local/local_socket.hpp"
#include "runtime/bootstrap/local/pidfd_watcher.hpp"
#include "runtime/bootstrap/store/host_table.hpp"
#include "runtime/bootstrap/store/machine_key.hpp"
#include "runtime/bootstrap/store/store_finder.hpp"

namespace horo::runtime::bootstrap {

namespace {

std::string this_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

struct BoardFacts {
  RankState state = RankState::dead;  ///< State of the rank that asks.
  int pid = 0;                        ///< Process id that it had when it attached.
  std::uint64_t nonce = 0;
  kv::Secret secret{};
};

Result<BoardFacts> look_at(int board, LocalRank me) {
  HORO_TRY(const auto header, map_board_header(board));
  BoardFacts facts{.nonce = header->nonce, .secret = header->secret};
  if (me.value() >= 0 && me.value() < header.local_size()) {
    facts.state = header->slot(me).state.load(std::memory_order_seq_cst);
    facts.pid = static_cast<int>(header->slot(me).pid.load(std::memory_order_relaxed));
  }
  unmap_board_header(header);
  return facts;
}

}  // namespace

class Bootstrap::Impl {
 public:
  Result<Meeting> meet(const Lookup& environment, const MeetLimits& limits) {
    const auto& deadline = limits.deadline;
    HORO_TRY(Identity identity, read_identity(environment));
    if (identity.worker.hostname.empty()) identity.worker.hostname = this_host();
    const char* host_key = environment("HORO_HOST_KEY");
    if (identity.launcher == LauncherKind::horo_run) {
      if (host_key != nullptr) {
        return fail(Errc::unsupported,
                    "HORO_HOST_KEY='{}' under horo run, which has placed the ranks; unset it",
                    host_key);
      }
      return meet_under_agent(identity, deadline);
    }
    UniqueFd agents;
    if (identity.watched) {
      HORO_TRY(agents, free_slot_of_agent(identity.worker));
    }
    if (identity.worker.size > 1)
      HORO_TRY_STATUS(find_place(identity, host_key, environment, deadline));
    HORO_TRY(BoardHandover handover, share_board(identity, {}, deadline));
    HORO_TRY(auto meeting, meeting_of(identity, handover));
    if (!handover.peers.empty()) {
      HORO_TRY(meeting.watcher, watch_peers(meeting.board.value(), std::move(handover.peers),
                                            {.host = meeting.identity.hostname,
                                             .release_timeout = limits.release_timeout}));
    }
    if (agents) {
      HORO_TRY(meeting.watcher, watched_too(agents, meeting));
    }
    return meeting;
  }

  void retire() { finder_.retire(); }

 private:
  /// The agent's board, which is for this rank only. Fails: as open_inherited_board; unavailable.
  static Result<UniqueFd> free_slot_of_agent(const WorkerIdentity& worker) {
    HORO_TRY(UniqueFd agents, open_inherited_board(worker));
    HORO_TRY(const auto known, look_at(agents.value(), LocalRank{0}));
    HORO_TRY_STATUS(check_free(worker, known));
    return agents;
  }

  static Status check_free(const WorkerIdentity& worker, const BoardFacts& known) {
    if (known.state == RankState::absent || known.state == RankState::detached) return {};
    return fail(Errc::unavailable,
                "rank {} of this job is process {} already; a rank joins once at a time",
                worker.rank, known.pid);
  }

  /// Watches for both the peers and this rank's agent.
  static Result<std::unique_ptr<PeerWatcher>> watched_too(const UniqueFd& agents,
                                                          Meeting& meeting) {
    class Both final : public PeerWatcher {
     public:
      Both(std::unique_ptr<PeerWatcher> peers, std::unique_ptr<PeerWatcher> agent)
          : peers_(std::move(peers)), agent_(std::move(agent)) {}

      void note_loss(Rank lost) override { agent_->note_loss(lost); }

     private:
      std::unique_ptr<PeerWatcher> peers_;
      std::unique_ptr<PeerWatcher> agent_;
    };

    HORO_TRY(auto bridge, bridge_to_agent({.agents_board = agents.value(),
                                           .board = meeting.board.value(),
                                           .there = LocalRank{0},
                                           .here = meeting.identity.local_rank,
                                           .same_ranks = false}));
    return std::unique_ptr<PeerWatcher>(
        std::make_unique<Both>(std::move(meeting.watcher), std::move(bridge)));
  }

  /// The agent's board serves one epoch; the ranks hand over the boards of later epochs themselves.
  Result<Meeting> meet_under_agent(Identity& identity, const Deadline& deadline) {
    const auto& worker = identity.worker;
    HORO_TRY(UniqueFd agents, open_inherited_board(worker));
    HORO_TRY(const auto known, look_at(agents.value(), worker.local_rank));
    HORO_TRY_STATUS(check_free(worker, known));
    const bool fresh = known.state == RankState::absent;
    const bool alone = worker.local_size == worker.size;
    if (!alone) store_ = finder_.adopt({worker.rendezvous, known.secret});
    if (fresh && alone) {
      BoardHandover handover;
      handover.board = std::move(agents);
      return meeting_of(identity, handover);
    }
    identity.meeting_place += fmt::format("board={};", worker.board_nonce);
    if (fresh) {
      HORO_TRY(BoardHandover handover, share_board(identity, std::move(agents), deadline));
      return meeting_of(identity, handover);
    }
    HORO_TRY(BoardHandover handover, share_board(identity, {}, deadline));
    HORO_TRY(auto meeting, meeting_of(identity, handover));
    HORO_TRY(meeting.watcher, bridge_to_agent({.agents_board = agents.value(),
                                               .board = meeting.board.value(),
                                               .there = worker.local_rank,
                                               .here = worker.local_rank}));
    return meeting;
  }

  /// Finds out which ranks share this host, and the name under which they find each other.
  Status find_place(Identity& identity, const char* host_key, const Lookup& environment,
                    const Deadline& deadline) {
    auto& worker = identity.worker;
    const bool can_ask = StoreFinder::possible(identity, environment);
    if (!identity.local_known && host_key == nullptr && !can_ask) {
      // No variable tells of other hosts or of a store: assume that all ranks are on this host.
      worker.local_rank = LocalRank{worker.rank.value()};
      worker.local_size = worker.size;
    } else if (!identity.local_known || host_key != nullptr) {
      HORO_TRY(store_, finder_.find(identity, environment, deadline));
      const auto key = host_key != nullptr ? fmt::format("key {}", host_key) : machine_key();
      HORO_TRY_STATUS(ask_for_place(identity, key, deadline));
      identity.meeting_place += fmt::format("host={};", key);
    } else if (worker.local_size != worker.size) {
      HORO_TRY(store_, finder_.find(identity, environment, deadline));
    }
    if (identity.pmi_fd >= 0 && peer_pid(identity.pmi_fd) > 0)
      identity.meeting_place += fmt::format("manager={};", peer_pid(identity.pmi_fd));
    if (!identity.meeting_place.empty()) return {};
    return fail(Errc::invalid_argument,
                "rank {} of {} was started by {}, but nothing tells its job from others of this "
                "user; set HORO_JOB_ID, the same on all ranks, or MASTER_ADDR and MASTER_PORT",
                worker.rank, worker.size, name(identity.launcher));
  }

  /// Asks only once, because processes do not move to another host.
  Status ask_for_place(Identity& identity, const std::string& key, const Deadline& deadline) {
    auto& worker = identity.worker;
    if (!place_) {
      HORO_TRY(kv::Client client, connect_in_time(*store_, deadline));
      if (worker.rank == Rank{0}) {
        HORO_TRY(place_, collect_places(places_, client, worker.size, key, deadline));
      } else {
        const auto request = encode(PlaceRequest{.rank = worker.rank.value(), .host_key = key});
        HORO_TRY(const auto bytes, send_request(client, kPlaces, request, deadline));
        HORO_TRY(place_, decode_local_position(bytes));
      }
    }
    worker.local_rank = LocalRank{place_->local_rank};
    worker.local_size = place_->local_size;
    return {};
  }

  /// `ready`: a board that exists already and only has to be handed over.
  Result<BoardHandover> share_board(const Identity& identity, UniqueFd ready,
                                    const Deadline& deadline) {
    const auto& worker = identity.worker;
    const LocalPlace place{.meeting_place = identity.meeting_place,
                           .rank = worker.rank,
                           .size = worker.size,
                           .local_rank = worker.local_rank,
                           .local_size = worker.local_size};
    if (worker.local_size == 1)
      return make_gift(identity, std::move(ready), {worker.rank}, deadline);
    if (worker.local_rank != LocalRank{0}) return join_local(place, deadline);
    HORO_TRY(LocalLeader leader, LocalLeader::open(place, deadline));
    HORO_TRY_STATUS(leader.gather(deadline));
    auto handover = make_gift(identity, std::move(ready), leader.ranks(), deadline);
    if (!handover) {
      leader.refuse(handover.error());
      return handover;
    }
    HORO_TRY_STATUS(leader.give(*handover));
    return handover;
  }

  /// The first local rank's part, once all local ranks have connected: meets the other hosts, then
  /// makes the board.
  Result<BoardHandover> make_gift(const Identity& identity, UniqueFd ready, std::vector<Rank> ranks,
                                  const Deadline& deadline) {
    BoardHandover handover;
    handover.epoch = Epoch{epochs_ + 1};
    handover.ranks = std::move(ranks);
    kv::Secret secret{};
    if (store_ != nullptr) {
      HORO_TRY(const auto table, meet_hosts(identity, handover.ranks, deadline));
      handover.epoch = Epoch{table.epoch};
      handover.hosts = encode(table);
      secret = store_->secret;
    }
    if (ready) {
      HORO_TRY(const auto known, look_at(ready.value(), identity.worker.local_rank));
      handover.nonce = known.nonce;
      handover.board = std::move(ready);
    } else {
      if (getrandom(&handover.nonce, sizeof handover.nonce, 0) != sizeof handover.nonce)
        return fail_errno(errno, "drawing the board's nonce");
      HORO_TRY(const int fd, make_board({.local_size = static_cast<int>(handover.ranks.size()),
                                         .nonce = handover.nonce,
                                         .epoch = handover.epoch,
                                         .secret = secret}));
      handover.board = UniqueFd(fd);
    }
    epochs_ = handover.epoch.value();
    return handover;
  }

  Result<HostTable> meet_hosts(const Identity& identity, const std::vector<Rank>& ranks,
                               const Deadline& deadline) {
    HORO_TRY(kv::Client client, connect_in_time(*store_, deadline));
    HostReport own{
        .host = {.name = identity.worker.hostname, .address = client.own_host(), .ranks = ranks},
        .server_host = client.server_host()};
    const int size = identity.worker.size;
    if (std::find(ranks.begin(), ranks.end(), Rank{0}) != ranks.end())
      return collect_hosts(hosts_, client, size, std::move(own), epochs_ + 1, deadline);
    return ask_for_hosts(client, kHosts, size, own, deadline);
  }

  Result<Meeting> meeting_of(const Identity& identity, BoardHandover& handover) const {
    Meeting meeting;
    meeting.identity = identity.worker;
    meeting.board = std::move(handover.board);
    meeting.epoch = handover.epoch;
    meeting.store = store_;
    if (handover.hosts.empty()) {
      meeting.hosts.push_back(
          {.name = identity.worker.hostname, .address = {}, .ranks = std::move(handover.ranks)});
    } else {
      HORO_TRY(auto table, decode_table(handover.hosts, identity.worker.size));
      meeting.hosts = std::move(table.hosts);
    }
    if (meeting.hosts.size() > 1) HORO_TRY_STATUS(find_self(meeting));
    return meeting;
  }

  static Status find_self(Meeting& meeting) {
    auto& me = meeting.identity;
    const auto local = me.local_rank.index();
    bool found = false;
    me.cross_size = 0;
    for (std::size_t i = 0; i < meeting.hosts.size(); ++i) {
      const auto& ranks = meeting.hosts[i].ranks;
      if (local >= ranks.size()) continue;
      if (ranks[local] == me.rank) {
        me.host_index = static_cast<int>(i);
        me.cross_rank = me.cross_size;
        found = true;
      }
      ++me.cross_size;
    }
    if (found) return {};
    return fail(Errc::protocol, "rank {} is not where the list of hosts has it", me.rank);
  }

  static constexpr const char* kPlaces = "horo/places";
  static constexpr const char* kHosts = "horo/hosts";

  StoreFinder finder_;
  std::shared_ptr<JobStore> store_;     ///< Null while no other host is known.
  std::optional<LocalPosition> place_;  ///< Rank 0's answer, once asked for.
  RequestCollector places_{kPlaces};
  RequestCollector hosts_{kHosts};
  std::uint64_t epochs_ = 0;  ///< The last epoch that this process has opened for its host.
};

Bootstrap::Bootstrap() : impl_(std::make_unique<Impl>()) {}

Bootstrap::~Bootstrap() = default;

Result<Meeting> Bootstrap::meet(const Lookup& environment, const MeetLimits& limits) {
  return impl_->meet(environment, limits);
}

void Bootstrap::retire() {
  impl_->retire();
}

}  // namespace horo::runtime::bootstrap
