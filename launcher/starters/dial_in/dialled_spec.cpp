// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/dialled_spec.hpp"

#include <utility>

namespace horo::launcher {

AgentSpec make_dialled_spec(AgentSpec host_spec, Rank rank, const DialInJob& job) {
  auto spec = std::move(host_spec);
  auto identity = spec.ranks[job.placement.ranks[rank.index()].local_rank.index()];
  if (job.variables == RankVariables::from_starting_system) {
    identity.rendezvous.clear();
    spec.common.reset();
    spec.environment.clear();
  }
  spec.ranks = {std::move(identity)};
  spec.stay = Duration::zero();
  return spec;
}

}  // namespace horo::launcher
