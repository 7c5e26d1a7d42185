// SPDX-License-Identifier: Apache-2.0
// Steps of the membership machine that lead to the next generation: workers are started, changes
// are announced, and the generation is formed. For membership.cpp and the other steps only.
#pragma once

#include <vector>

#include "launcher/elastic/membership.hpp"

namespace horo::launcher {

/// The members of the next generation if it were formed now, in rank order.
struct GenerationPlan {
  std::vector<ElasticWorker*> members;
  std::size_t survivors = 0;  ///< The first of them were members before and may have the state.
};

GenerationPlan plan_generation(MembershipState& state);

/// True: every member that lives has called, and in the first generation all workers have.
bool all_have_called(const MembershipState& state, TimePoint now);

/// True: nothing follows from this call, because the generation waits for another worker as well.
/// Calls of many workers at once are frequent, so this takes no time that grows with the workers.
bool waits_for_others(MembershipState& state, const WorkerCalled& call, TimePoint now);

/// Ends the wait for slots when enough are offered.
void seek_slots(MembershipState& state, TimePoint now);

void form_when_ready(MembershipState& state, TimePoint now);

/// Starts workers where there is room, as far as the job can use them.
void start_workers(MembershipState& state, TimePoint now);

/// Tells the members of a running generation that another one should follow.
void announce_changes(MembershipState& state, TimePoint now);

}  // namespace horo::launcher
