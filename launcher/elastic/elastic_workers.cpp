// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/elastic_workers.hpp"

#include <algorithm>

#include "launcher/elastic/earliest.hpp"

namespace horo::launcher {

ElasticWorker& ElasticWorkers::start(std::size_t host, TimePoint due) {
  const int slot = lowest_free_slot(host);
  workers_.push_back({.number = next_number_++, .host = host, .slot = slot, .due = due});
  return workers_.back();
}

int ElasticWorkers::lowest_free_slot(std::size_t host) const {
  std::vector<int> taken;
  for (const auto& worker : workers_) {
    if (worker.living() && worker.host == host) taken.push_back(worker.slot);
  }
  std::sort(taken.begin(), taken.end());
  int slot = 0;
  for (const int other : taken) slot += other == slot ? 1 : 0;
  return slot;
}

ElasticWorker* ElasticWorkers::find(int number) {
  // The vector is in ascending order of numbers, because each new worker has the next number.
  const auto found = std::lower_bound(
      workers_.begin(), workers_.end(), number,
      [](const ElasticWorker& worker, int wanted) { return worker.number < wanted; });
  if (found == workers_.end() || found->number != number || !found->living()) return nullptr;
  return &*found;
}

int ElasticWorkers::staying() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker.counts() && worker.leave == LeaveCause::none;
  }));
}

std::vector<int> ElasticWorkers::living_by_host(std::size_t hosts) const {
  std::vector<int> living(hosts, 0);
  for (const auto& worker : workers_) living[worker.host] += worker.living() ? 1 : 0;
  return living;
}

int ElasticWorkers::living() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                        [](const auto& worker) { return worker.living(); }));
}

std::vector<ElasticWorker*> ElasticWorkers::members() {
  std::vector<ElasticWorker*> found;
  for (auto& worker : workers_) {
    if (worker.rank && worker.counts()) found.push_back(&worker);
  }
  std::sort(found.begin(), found.end(),
            [](const auto* a, const auto* b) { return *a->rank < *b->rank; });
  return found;
}

void ElasticWorkers::forget_ended() {
  std::erase_if(workers_, [](const auto& worker) { return !worker.living(); });
}

void ElasticWorkers::delay(Duration by) {
  for (auto& worker : workers_) {
    if (worker.due) *worker.due += by;
    if (worker.leave_by) *worker.leave_by += by;
  }
}

std::optional<TimePoint> ElasticWorkers::next_deadline(TimePoint now) const {
  std::optional<TimePoint> next;
  const auto consider = [&](std::optional<TimePoint> deadline) {
    if (deadline && *deadline > now) next = earliest(next, deadline);
  };
  for (const auto& worker : workers_) {
    if (!worker.living() || worker.phase == WorkerPhase::ending) continue;
    consider(worker.due);
    if (worker.counts()) consider(worker.leave_by);
  }
  return next;
}

}  // namespace horo::launcher
