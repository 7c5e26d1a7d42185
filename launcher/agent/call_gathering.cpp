// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/call_gathering.hpp"

#include <algorithm>

namespace horo::launcher {

bool CallGathering::add(const elastic::MembershipCall& call) {
  const auto found = workers_.find(call.worker);
  if (found == workers_.end()) return false;
  found->second = {.stage = Stage::gathered, .call = call};
  return true;
}

bool CallGathering::any() const {
  return std::ranges::any_of(workers_,
                             [](const auto& one) { return one.second.stage == Stage::gathered; });
}

bool CallGathering::complete() const {
  return std::ranges::none_of(workers_,
                              [](const auto& one) { return one.second.stage == Stage::busy; });
}

std::vector<elastic::MembershipCall> CallGathering::take() {
  std::vector<elastic::MembershipCall> calls;
  for (auto& [number, worker] : workers_) {
    if (worker.stage != Stage::gathered) continue;
    calls.push_back(worker.call);
    worker.stage = Stage::sent;
  }
  return calls;
}

void CallGathering::answered(std::uint32_t worker, std::uint32_t attempt) {
  const auto found = workers_.find(worker);
  if (found != workers_.end() && found->second.call.attempt == attempt)
    found->second.stage = Stage::busy;
}

}  // namespace horo::launcher
