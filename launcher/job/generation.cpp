// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/generation.hpp"

#include <algorithm>
#include <utility>

namespace horo::launcher {

bool Generation::all_succeeded() const {
  return std::all_of(fates.begin(), fates.end(), [](const RankFate& fate) {
    return fate.phase == RankPhase::ended && fate.exit.wait_status == 0;
  });
}

Generation make_generation(Epoch epoch, Placement placement,
                           std::optional<std::size_t> this_machine) {
  HORO_CHECK(!placement.hosts.empty());
  Generation generation;
  generation.epoch = epoch;
  generation.this_machine = this_machine;
  generation.fates.resize(placement.ranks.size());
  generation.host_done.resize(placement.hosts.size(), false);
  generation.waiting = placement.ranks.size();
  generation.unended = placement.ranks.size();
  generation.hosts_left = placement.hosts.size();
  generation.placement = std::move(placement);
  return generation;
}

}  // namespace horo::launcher
