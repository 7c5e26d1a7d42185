// SPDX-License-Identifier: Apache-2.0
// What a rank knows once the ranks of a job have found each other: a session starts from it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/board_header.hpp"
#include "base/kv/client.hpp"
#include "base/unique_fd.hpp"
#include "base/worker_env.hpp"
#include "runtime/bootstrap/meeting/meeting_guard.hpp"
#include "runtime/bootstrap/meeting/peer_watcher.hpp"

namespace horo::runtime::bootstrap {

/// One host of the job. Processes are on the same host if they can share a board.
struct JobHost {
  std::string name;         ///< For messages.
  std::string address;      ///< The address, a number, at which other hosts reach it.
  std::vector<Rank> ranks;  ///< By local rank; the first is the host's leader.

  friend bool operator==(const JobHost&, const JobHost&) = default;
};

/// The job's key-value store. Copies are the same store. Thread: any.
struct JobStore {
  std::string address;
  kv::Secret secret{};

  /// A connection of its own. Fails: as kv::Client::connect.
  Result<kv::Client> connect(const Deadline& deadline) const {
    return kv::Client::connect(address, secret, deadline);
  }
};

/// The facts about a generation of an elastic job that a rank's identity does not have.
struct Membership {
  std::uint64_t generation = 0;  ///< 0: the job is not elastic.
  int survivors = 0;             ///< Ranks below this were members of the generation before.
  std::uint64_t notice = 0;      ///< The generation has all changes up to this sequence number.
  const BoardHeader* agents = nullptr;  ///< The agent's board, mapped until the process ends.
};

struct Meeting {
  WorkerIdentity identity;  ///< With all fields set.
  UniqueFd board;           ///< The board of this host in this epoch.
  Epoch epoch{1};
  std::vector<JobHost> hosts;       ///< By index; this rank's is hosts[identity.host_index].
  std::shared_ptr<JobStore> store;  ///< Null if the job has one host.
  std::unique_ptr<PeerWatcher>
      watcher;  ///< Null under an agent's eyes, and when there is nobody to lose.
  Membership membership;
  std::unique_ptr<MeetingGuard> guard;  ///< Destroyed once all ranks have joined. May be null.
};

}  // namespace horo::runtime::bootstrap
