// SPDX-License-Identifier: Apache-2.0
// What a rank has of its job's other hosts.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/sets/host_map.hpp"
#include "runtime/sets/set_connector.hpp"
#include "runtime/sets/start_clock.hpp"
#include "runtime/sets/tree_link.hpp"

namespace horo::runtime {

struct JobHostsOptions {
  int tree_radix = 16;
  Duration heartbeat_timeout = std::chrono::seconds(5);
  ConnectOptions connect;
};

/// Holds the three parts; each says what it owns. Thread: as each part.
class JobHosts {
 public:
  /// For a rank of a job on several hosts, once all ranks of its host are there. `memory` outlives
  /// this. Blocks and fails as TreeLink::start.
  static Result<std::unique_ptr<JobHosts>> meet(const bootstrap::Meeting& meeting,
                                                HostMemory& memory, const JobHostsOptions& options,
                                                const StartClock& start);

  const HostMap& map() const { return map_; }

  TreeLink& tree() { return tree_; }

  SetConnector& connector() { return connector_; }

 private:
  JobHosts(const bootstrap::Meeting& meeting, HostMemory& memory, const ConnectOptions& options,
           Deadline ranks_connect);

  const HostMap map_;
  TreeLink tree_;
  SetConnector connector_;
};

}  // namespace horo::runtime
