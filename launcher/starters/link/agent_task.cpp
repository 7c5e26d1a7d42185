// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/agent_task.hpp"

#include <algorithm>
#include <utility>

namespace horo::launcher {

TaskRanks::TaskRanks(const AgentSpec& given) : elastic_(given.elastic), places_(given.places()) {
  add(given.ranks);
}

bool TaskRanks::has(Rank number) const {
  return std::ranges::binary_search(numbers_, number);
}

void TaskRanks::add(const std::vector<WorkerIdentity>& workers) {
  if (job_id_.empty() && !workers.empty()) job_id_ = workers.front().job_id;
  for (const auto& worker : workers) {
    const Rank number = number_of(worker);
    if (!has(number)) numbers_.insert(std::ranges::upper_bound(numbers_, number), number);
  }
}

void TaskRanks::forget(Rank number) {
  if (elastic_) std::erase(numbers_, number);
}

AgentTask::AgentTask(const AgentSpec& given)
    : epoch_(given.epoch),
      ranks_(given),
      ports_(static_cast<int>(given.ranks.size()) + 1),
      grace_(given.failure_grace + given.grace),
      stays_(given.stay > Duration::zero()) {
  if (!given.held) spec_ = given;
}

bool AgentTask::has_begun() const {
  return stage_ == Stage::begun || stage_ == Stage::stopping || stage_ == Stage::killing;
}

bool AgentTask::become_ready() {
  if (stage_ != Stage::preparing) return false;
  stage_ = Stage::ready;
  return true;
}

bool AgentTask::begin() {
  if (stage_ != Stage::preparing && stage_ != Stage::ready) return false;
  stage_ = Stage::begun;
  return true;
}

bool AgentTask::stop() {
  if (stage_ != Stage::begun) return false;
  stage_ = Stage::stopping;
  return true;
}

bool AgentTask::kill() {
  return has_begun() && std::exchange(stage_, Stage::killing) != Stage::killing;
}

bool AgentTask::cancel() {
  return std::exchange(stage_, Stage::cancelled) != Stage::cancelled;
}

bool AgentTask::take(Epoch epoch) {
  return epoch == epoch_ && !std::exchange(taken_, true);
}

}  // namespace horo::launcher
