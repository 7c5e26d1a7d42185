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
  std::string meeting_place;  ///< Identity::meeting_place, with all that tells hosts apart.
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

/// What the first local rank gives to the others.
struct Gift {
  UniqueFd board;
  std::uint64_t nonce = 0;
  Epoch epoch{1};
  std::string hosts;        ///< Encoded HostTable; empty: this host is all.
  std::vector<Peer> peers;  ///< All local ranks but the one that has this.
  std::vector<Rank> ranks;  ///< Of all local ranks.
};

/// The first local rank's side. Nothing listens at its name any more when it is destroyed.
/// Thread: owner.
class LocalLeader {
 public:
  /// Listens. Fails: unavailable (another job of this name), unsupported, io.
  static Result<LocalLeader> open(const LocalPlace& place, const Deadline& deadline);
  ~LocalLeader();
  LocalLeader(LocalLeader&&) noexcept;
  LocalLeader& operator=(LocalLeader&&) = delete;

  /// Returns when all local ranks have come. Blocks. Fails: timed_out (naming those that have not),
  /// peer_lost (one came and ended), mismatch (they do not belong together).
  Status gather(const Deadline& deadline);

  /// Of all local ranks, after gather().
  std::vector<Rank> ranks() const;

  /// To all, after gather(); `gift.peers` is filled in. Fails: peer_lost, io.
  Status give(Gift& gift);

  /// Tells all that have come why nothing becomes of it.
  void refuse(const Error& error);

 private:
  class Impl;
  explicit LocalLeader(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// Any other local rank's side. Blocks: until the first local rank gives or refuses.
/// Fails: timed_out, peer_lost, permission_denied (another user's process), version_mismatch; and
/// with what the first local rank refuses for.
Result<Gift> join_local(const LocalPlace& place, const Deadline& deadline);

}  // namespace horo::runtime::bootstrap
