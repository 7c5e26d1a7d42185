// SPDX-License-Identifier: Apache-2.0
// The part of a meeting that begins when every rank knows its place: the ranks of a host connect,
// their first rank meets the other hosts, and makes the board that all of them map.
#pragma once

#include <cstdint>
#include <memory>

#include "base/board_header.hpp"
#include "base/deadline.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/bootstrap/identity/identity.hpp"
#include "runtime/bootstrap/local/local_group.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/bootstrap/store/store_requests.hpp"

namespace horo::runtime::bootstrap {

/// The state of a rank of this host on a board, and the facts in the board's header.
struct BoardFacts {
  RankState state = RankState::dead;
  int pid = 0;  ///< Process id that the rank had when it attached.
  std::uint64_t nonce = 0;
  kv::Secret secret{};
};

/// Fails: protocol, version_mismatch, io.
Result<BoardFacts> look_at(int board, LocalRank rank);

/// Fails: unavailable (the rank with this slot on its agent's board is in the job already).
Status check_free(const WorkerIdentity& worker, const BoardFacts& slot);

/// One rank's part in the meeting of an epoch. Thread: one at a time.
class BoardSharing {
 public:
  struct Parts {
    const Identity& identity;         ///< Its place is known.
    std::shared_ptr<JobStore> store;  ///< Null: there is no other host.
    RequestCollector& hosts;          ///< Used by the first rank of rank 0's host.
    std::uint64_t& epochs;            ///< The last epoch that this process has opened.
  };

  explicit BoardSharing(const Parts& parts) : parts_(parts) {}

  /// `ready`: a board that exists already and only has to be handed over. Blocks. Fails: as
  /// LocalLeader, join_local, collect_hosts and make_board.
  Result<BoardHandover> share(UniqueFd ready, const WaitLimit& limit);

  /// Returns what the session needs to know. Fails: protocol.
  Result<Meeting> meeting_of(BoardHandover& handover) const;

 private:
  Result<BoardHandover> make_gift(UniqueFd ready, std::vector<Rank> ranks, const WaitLimit& limit);
  Result<std::string> meet_hosts(BoardHandover& handover, const WaitLimit& limit);

  const Parts parts_;
};

}  // namespace horo::runtime::bootstrap
