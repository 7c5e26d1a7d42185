// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/dial_in_checks.hpp"

namespace horo::launcher {

Status check_is_fixed(const AgentSpec& spec, const DialInJob& job) {
  if (!spec.elastic) return {};
  return fail(Errc::unsupported,
              "{} starts a fixed number of ranks, so this job cannot be elastic; let horo start "
              "the ranks itself, or leave out --min-np and --max-np",
              job.started_by);
}

std::string find_mismatch(const RankClaim& claim, const DialInJob& job) {
  const auto& planned = job.placement.ranks[static_cast<std::size_t>(claim.rank)];
  if (claim.local_rank < 0 || claim.local_size < 0) return {};
  if (claim.local_rank == planned.local_rank.value() && claim.local_size == planned.local_size)
    return {};
  return fmt::format(
      "{} started rank {} as number {} of {} on '{}', but the plan has it as number {} of {} on "
      "'{}'; remove placement options from --mpi-args and --binding-args, and use -H and --map-by",
      job.started_by, claim.rank, claim.local_rank, claim.local_size, claim.host,
      planned.local_rank, planned.local_size, job.placement.hosts[planned.host].name);
}

}  // namespace horo::launcher
