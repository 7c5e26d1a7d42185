// SPDX-License-Identifier: Apache-2.0
// Stalls of sets with members on other hosts: what the root asks all hosts, and what it makes of
// their answers. Pure.
#pragma once

#include <vector>

#include "base/clock.hpp"
#include "base/strong.hpp"
#include "runtime/stalls/stall_report.hpp"
#include "runtime/tree/agreement/host_log.hpp"

namespace horo::runtime {

/// Questions about tensors that have waited for `limit` on this host; `ends`: the job ends if they
/// have waited on all hosts. `set`: its number in the tree.
std::vector<tree::StallQuestion> stall_questions(SetId set, std::vector<Stalled>&& tensors,
                                                 Duration limit, bool ends);

/// The answers of all hosts as one report. `set` is the number that users see.
StallFacts facts_of(SetId set, const tree::StallQuestion& question,
                    const tree::StallAnswer& answer);

}  // namespace horo::runtime
