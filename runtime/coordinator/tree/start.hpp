// SPDX-License-Identifier: Apache-2.0
// A host's leader joins the tree of its job: it listens, leaves its port in the job's store, and
// finds its parent's there.
#pragma once

#include <functional>
#include <memory>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/meeting.hpp"
#include "runtime/coordinator/tree/node.hpp"

namespace horo::runtime::tree {

struct TreeOptions {
  int radix = 16;
  Duration heartbeat_timeout = std::chrono::seconds(5);
  CutRules rules;          ///< The same on all hosts.
  std::string settings{};  ///< These too, with radix and ranks.
};

/// For the first rank of a host, once its own host has met. Blocks: until the neighbouring leaders
/// have come, or `cancelled`. Fails: as Node::start; invalid_argument (the meeting contradicts
/// itself).
Result<std::unique_ptr<Node>> start_node(const bootstrap::Meeting& meeting,
                                         const TreeOptions& options, HostState& state,
                                         const Deadline& deadline,
                                         const std::function<bool()>& cancelled);

}  // namespace horo::runtime::tree
