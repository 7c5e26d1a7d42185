// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/job_hosts.hpp"

#include <algorithm>

#include "base/kv/cipher.hpp"
#include "base/kv/descriptor_limit.hpp"

namespace horo::runtime {

JobHosts::JobHosts(const bootstrap::Meeting& meeting, HostMemory& memory,
                   const ConnectOptions& options, Deadline ranks_connect)
    : map_(meeting),
      tree_(memory),
      connector_(meeting, memory, map_, options,
                 {.lost = [this] { return tree_.has_loss(); }, .jobs_set = ranks_connect}) {}

Result<std::unique_ptr<JobHosts>> JobHosts::meet(const bootstrap::Meeting& meeting,
                                                 HostMemory& memory, const JobHostsOptions& options,
                                                 const StartClock& start) {
  const auto& connect = options.connect;
  if (connect.encryption == kv::Encryption::on) HORO_TRY_STATUS(kv::can_encrypt());
  // Connections to other hosts need more than a few; a backend raises the limit further if it must.
  kv::raise_descriptor_limit(kv::kFewDescriptors);
  std::unique_ptr<JobHosts> hosts(new JobHosts(meeting, memory, connect, start.ranks()));
  if (memory.me() != LocalRank{0}) return hosts;
  // Hosts that have set these differently would choose different backends.
  const auto& interfaces = connect.gloo_interface;
  const auto settings =
      fmt::format("{} {} {} {}", static_cast<int>(connect.operations), connect.hierarchical,
                  connect.deterministic, std::count(interfaces.begin(), interfaces.end(), ','));
  HORO_TRY_STATUS(hosts->tree_.start(meeting,
                                     {.radix = options.tree_radix,
                                      .heartbeat_timeout = options.heartbeat_timeout,
                                      .rules = {},
                                      .settings = settings,
                                      .encryption = connect.encryption},
                                     start.leaders()));
  return hosts;
}

}  // namespace horo::runtime
