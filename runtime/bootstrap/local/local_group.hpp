// SPDX-License-Identifier: Apache-2.0
// How the ranks of one host come to share a board without an agent: the first of them makes it and
// hands it to the others, together with a pidfd of every rank. "The same host" means just that:
// they meet at one socket and map one memfd.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "base/unique_fd.hpp"

namespace horo::runtime::bootstrap {

/// Where a rank stands among those of its host.
struct LocalPlace {
  std::string meeting_place;  ///< Identity::meeting_place, with what tells hosts apart.
  Rank rank{0};
  int size = 1;
  LocalRank local_rank{0};
  int local_size = 1;
};

/// Another rank of this host.
struct Peer {
  LocalRank local_rank{0};
  Rank rank{0};
  UniqueFd pidfd;  ///< Readable once the process has ended.
};

/// The board and the facts about it that the first local rank hands over to the others.
struct BoardHandover {
  UniqueFd board;
  std::uint64_t nonce = 0;
  Epoch epoch{1};
  std::string hosts;        ///< Encoded HostTable; empty: there is no other host.
  std::vector<Peer> peers;  ///< All local ranks but the one that has this.
  std::vector<Rank> ranks;  ///< All local ranks, by local rank.
};

/// The first local rank's side. Stops listening when it is destroyed.
/// Thread: owner.
class LocalLeader {
 public:
  /// Listens. Fails: unavailable (another job of this name), unsupported, io.
  static Result<LocalLeader> open(const LocalPlace& place, const WaitLimit& limit);
  ~LocalLeader();
  LocalLeader(LocalLeader&&) noexcept;
  LocalLeader& operator=(LocalLeader&&) = delete;

  /// Returns when all local ranks have connected. Blocks. Fails: timed_out (names those that are
  /// missing), cancelled, peer_lost (a rank connected and ended), mismatch (ranks of different
  /// jobs).
  Status gather(const WaitLimit& limit);

  /// All local ranks, by local rank. After gather().
  std::vector<Rank> ranks() const;

  /// Sends the handover to all local ranks, after gather(), and fills in `handover.peers`. Fails:
  /// peer_lost, io.
  Status give(BoardHandover& handover);

  /// Sends the error to all ranks that have connected.
  void refuse(const Error& error);

 private:
  class Impl;
  explicit LocalLeader(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// Any other local rank's side. Blocks: until the first local rank gives or refuses.
/// Fails: timed_out, cancelled, peer_lost, permission_denied (another user's process),
/// version_mismatch; and with what the first local rank refuses for.
Result<BoardHandover> join_local(const LocalPlace& place, const WaitLimit& limit);

}  // namespace horo::runtime::bootstrap
