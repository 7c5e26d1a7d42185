// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/board_sharing.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/random.h>

#include "runtime/bootstrap/store/host_table.hpp"

namespace horo::runtime::bootstrap {

namespace {

/// This rank's place among the hosts of the table.
Status find_self(Meeting& meeting) {
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

}  // namespace

Result<BoardFacts> look_at(int board, LocalRank rank) {
  HORO_TRY(const auto header, map_board_header(board));
  BoardFacts facts{.nonce = header->nonce, .secret = header->secret};
  if (rank.value() >= 0 && rank.value() < header.local_size()) {
    facts.state = header->slot(rank).state.load(std::memory_order_seq_cst);
    facts.pid = static_cast<int>(header->slot(rank).pid.load(std::memory_order_relaxed));
  }
  unmap_board_header(header);
  return facts;
}

Status check_free(const WorkerIdentity& worker, const BoardFacts& slot) {
  if (slot.state == RankState::absent || slot.state == RankState::detached) return {};
  return fail(Errc::unavailable,
              "rank {} of this job is process {} already; a rank joins once at a time", worker.rank,
              slot.pid);
}

Result<BoardHandover> BoardSharing::share(UniqueFd ready, const WaitLimit& limit) {
  const auto& worker = parts_.identity.worker;
  const LocalPlace place{.meeting_place = parts_.identity.meeting_place,
                         .rank = worker.rank,
                         .size = worker.size,
                         .local_rank = worker.local_rank,
                         .local_size = worker.local_size};
  if (worker.local_size == 1) return make_gift(std::move(ready), {worker.rank}, limit);
  if (worker.local_rank != LocalRank{0}) return join_local(place, limit);
  HORO_TRY(LocalLeader leader, LocalLeader::open(place, limit));
  HORO_TRY_STATUS(leader.gather(limit));
  auto handover = make_gift(std::move(ready), leader.ranks(), limit);
  if (!handover) {
    leader.refuse(handover.error());
    return handover;
  }
  HORO_TRY_STATUS(leader.give(*handover));
  return handover;
}

/// The first local rank's part, once all local ranks have connected: meets the other hosts, then
/// makes the board.
Result<BoardHandover> BoardSharing::make_gift(UniqueFd ready, std::vector<Rank> ranks,
                                              const WaitLimit& limit) {
  BoardHandover handover;
  handover.epoch = Epoch{parts_.epochs + 1};
  handover.ranks = std::move(ranks);
  kv::Secret secret{};
  if (parts_.store != nullptr) {
    HORO_TRY(handover.hosts, meet_hosts(handover, limit));
    secret = parts_.store->secret;
  }
  if (ready) {
    HORO_TRY(const auto known, look_at(ready.value(), parts_.identity.worker.local_rank));
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
  parts_.epochs = handover.epoch.value();
  return handover;
}

/// The encoded table of all hosts; its epoch becomes that of the handover.
Result<std::string> BoardSharing::meet_hosts(BoardHandover& handover, const WaitLimit& limit) {
  const auto& worker = parts_.identity.worker;
  const auto& ranks = handover.ranks;
  HORO_TRY(kv::Client client, connect_in_time(*parts_.store, limit));
  HostReport own{.host = {.name = worker.hostname, .address = client.own_host(), .ranks = ranks},
                 .server_host = client.server_host()};
  HostTable table;
  if (std::find(ranks.begin(), ranks.end(), Rank{0}) != ranks.end()) {
    HORO_TRY(table, collect_hosts(parts_.hosts, client, worker.size, std::move(own),
                                  parts_.epochs + 1, limit));
  } else {
    HORO_TRY(table, ask_for_hosts(client, parts_.hosts.topic(), worker.size, own, limit));
  }
  handover.epoch = Epoch{table.epoch};
  return encode(table);
}

Result<Meeting> BoardSharing::meeting_of(BoardHandover& handover) const {
  const auto& worker = parts_.identity.worker;
  Meeting meeting;
  meeting.identity = worker;
  meeting.board = std::move(handover.board);
  meeting.epoch = handover.epoch;
  meeting.store = parts_.store;
  if (handover.hosts.empty()) {
    meeting.hosts.push_back(
        {.name = worker.hostname, .address = {}, .ranks = std::move(handover.ranks)});
  } else {
    HORO_TRY(auto table, decode_table(handover.hosts, worker.size));
    meeting.hosts = std::move(table.hosts);
  }
  if (meeting.hosts.size() > 1) HORO_TRY_STATUS(find_self(meeting));
  return meeting;
}

}  // namespace horo::runtime::bootstrap
