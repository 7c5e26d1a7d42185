// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/csm_cpus.hpp"

#include "discovery/program.hpp"
#include "discovery/sources/csm.hpp"
#include "launcher/mpi/jsrun_command.hpp"

namespace horo::launcher {

Result<int> count_csm_cpus(const std::string& jsrun, const std::string& allocation,
                           WaitLimit limit) {
  const auto subject = fmt::format("CSM allocation {}", allocation);
  auto found = discovery::ask_csm(discovery::kCsmFolder, allocation, limit);
  if (!found) return fail(Errc::unavailable, "{}: {}", subject, found.error().message);
  const auto& node = found->nodes.front();
  if (found->cores == 0) {
    return fail(Errc::unavailable,
                "{}: node '{}' has no number of discovered_cores beyond the "
                "isolated_cores of each of its discovered_sockets",
                subject, node);
  }
  // Only a compute node knows in which of its SMT modes it runs.
  auto lscpu = discovery::output_of({jsrun, "--nrs", "1", "--tasks_per_rs", "1", "--cpu_per_rs",
                                     "1", "--gpu_per_rs", "0", "env", "LC_ALL=C", "lscpu"},
                                    limit);
  if (!lscpu) return fail(Errc::unavailable, "asking jsrun for lscpu: {}", lscpu.error().message);
  const int threads = threads_per_core(*lscpu);
  if (threads == 0)
    return fail(Errc::unavailable, "{}: lscpu on its nodes printed no 'Thread(s) per core'",
                subject);
  return found->cores * threads;
}

}  // namespace horo::launcher
