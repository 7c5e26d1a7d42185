// SPDX-License-Identifier: Apache-2.0
// What a rank knows once the ranks of a job have met: everything that a session starts from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/kv/client.hpp"
#include "base/unique_fd.hpp"
#include "base/worker_env.hpp"
#include "runtime/bootstrap/vigil.hpp"

namespace horo::runtime::bootstrap {

/// One host of the job. Which processes share one is decided by what they can share.
struct Host {
  std::string name;                    ///< For people.
  std::string address;                 ///< A number at which the other hosts reach it.
  std::vector<std::string> addresses;  ///< All that its interfaces have, `address` among them.
  std::vector<Rank> ranks;             ///< By local rank; the first is the host's leader.

  friend bool operator==(const Host&, const Host&) = default;
};

/// The job's key-value store. Copies are the same store. Thread: any.
struct Store {
  std::string address;
  kv::Secret secret{};

  /// A connection of its own. Fails: as kv::Client::connect.
  Result<kv::Client> connect(const Deadline& deadline) const {
    return kv::Client::connect(address, secret, deadline);
  }
};

struct Meeting {
  WorkerIdentity identity;  ///< Complete.
  UniqueFd board;           ///< Of this host and epoch.
  Epoch epoch{1};
  std::vector<Host> hosts;       ///< By index; this rank's is hosts[identity.host_index].
  std::shared_ptr<Store> store;  ///< Null when this host is all.
  std::unique_ptr<Vigil> vigil;  ///< Null under an agent's eyes, and when there is nobody to lose.
};

}  // namespace horo::runtime::bootstrap
