// SPDX-License-Identifier: Apache-2.0
// A host's leader joins the tree of its job: it listens, writes its port to the job's store, and
// reads its parent's there.
#pragma once

#include <functional>
#include <memory>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/tree/connections/leader_service.hpp"

namespace horo::runtime::tree {

struct TreeOptions {
  int radix = 16;
  Duration heartbeat_timeout = std::chrono::seconds(5);
  CutRules rules;          ///< The same on all hosts.
  std::string settings{};  ///< Knobs that select backends; the same on all hosts.
  kv::Encryption encryption = kv::Encryption::off;  ///< The same on all hosts.
};

/// Called by the first rank of a host, once the ranks of its host have met. Blocks: until the
/// neighbouring leaders have connected, or `cancelled`. Fails: as LeaderService::start;
/// invalid_argument (the meeting contradicts itself).
Result<std::unique_ptr<LeaderService>> start_leader_service(const bootstrap::Meeting& meeting,
                                                            const TreeOptions& options,
                                                            HostState& state,
                                                            const Deadline& deadline,
                                                            const std::function<bool()>& cancelled);

}  // namespace horo::runtime::tree
