// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/bootstrap.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unistd.h>

#include "base/board_header.hpp"
#include "runtime/bootstrap/board_sharing.hpp"
#include "runtime/bootstrap/elastic_member.hpp"
#include "runtime/bootstrap/epoch_watch.hpp"
#include "runtime/bootstrap/local/agent_bridge.hpp"
#include "runtime/bootstrap/local/inherited_board.hpp"
#include "runtime/bootstrap/local/local_group.hpp"
#include "runtime/bootstrap/local/local_socket.hpp"
#include "runtime/bootstrap/store/host_table.hpp"
#include "runtime/bootstrap/store/machine_key.hpp"
#include "runtime/bootstrap/store/store_finder.hpp"

namespace horo::runtime::bootstrap {

namespace {

std::string this_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
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
      return identity.worker.elastic ? elastic_.meet(std::move(identity), limits)
                                     : meet_under_agent(identity, deadline);
    }
    UniqueFd agents;
    if (identity.watched) {
      HORO_TRY(agents, free_slot_of_agent(identity.worker));
    }
    if (identity.worker.size > 1)
      HORO_TRY_STATUS(find_place(identity, host_key, environment, deadline));
    auto board = sharing(identity);
    HORO_TRY(BoardHandover handover, board.share({}, deadline));
    HORO_TRY(auto meeting, board.meeting_of(handover));
    HORO_TRY(meeting.watcher, watch_epoch(meeting, {.peers = std::move(handover.peers),
                                                    .release_timeout = limits.release_timeout,
                                                    .agents_board = agents ? agents.value() : -1}));
    return meeting;
  }

  void enter(Epoch epoch) { elastic_.enter(epoch); }

  Status resumed(Duration stood_still, std::int64_t repeated, const Deadline& deadline) {
    return elastic_.resumed(stood_still, repeated, deadline);
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

  /// The agent's board serves one epoch; the ranks hand over the boards of later epochs themselves.
  Result<Meeting> meet_under_agent(Identity& identity, const Deadline& deadline) {
    const auto& worker = identity.worker;
    HORO_TRY(UniqueFd agents, open_inherited_board(worker));
    HORO_TRY(const auto known, look_at(agents.value(), worker.local_rank));
    HORO_TRY_STATUS(check_free(worker, known));
    const bool fresh = known.state == RankState::absent;
    const bool alone = worker.local_size == worker.size;
    if (!alone) store_ = finder_.adopt({worker.rendezvous, known.secret});
    auto board = sharing(identity);
    if (fresh && alone) {
      BoardHandover handover;
      handover.board = std::move(agents);
      return board.meeting_of(handover);
    }
    identity.meeting_place += fmt::format("board={};", worker.board_nonce);
    if (fresh) {
      HORO_TRY(BoardHandover handover, board.share(std::move(agents), deadline));
      return board.meeting_of(handover);
    }
    HORO_TRY(BoardHandover handover, board.share({}, deadline));
    HORO_TRY(auto meeting, board.meeting_of(handover));
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

  BoardSharing sharing(const Identity& identity) {
    return BoardSharing(
        {.identity = identity, .store = store_, .hosts = hosts_, .epochs = epochs_});
  }

  static constexpr const char* kPlaces = "horo/places";
  static constexpr const char* kHosts = "horo/hosts";

  ElasticMember elastic_;
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

Status Bootstrap::resumed(Duration stood_still, std::int64_t repeated, const Deadline& deadline) {
  return impl_->resumed(stood_still, repeated, deadline);
}

void Bootstrap::enter(Epoch generation) {
  impl_->enter(generation);
}

void Bootstrap::retire() {
  impl_->retire();
}

}  // namespace horo::runtime::bootstrap
