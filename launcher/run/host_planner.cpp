// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/host_planner.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/knobs/knobs.hpp"
#include "launcher/run/mixed_starter.hpp"

namespace horo::launcher {

HostPlanner::HostPlanner(Loop& loop, JobRequest request, const JobPlan& first)
    : loop_(loop), request_(std::move(request)) {
  request_.joining.emplace(
      JoiningHosts{.hosts = {}, .job_id = first.job_id, .secret = first.secret});
  keep_all(first);
}

void HostPlanner::keep_all(const JobPlan& plan) {
  if (plan.agents.empty()) return;
  const std::shared_ptr<Starter> starter = make_mixed_starter(
      loop_, plan.placement, plan.starts, request_.settings.get(knobs::kStartTimeout));
  for (std::size_t i = 0; i < plan.agents.size(); ++i) {
    ElasticHostPlan host{.spec = plan.agents[i],
                         .worker = plan.agents[i].ranks.front(),
                         .starter = starter,
                         .is_here = plan.starts.hosts[i].method == StartMethod::local};
    host.spec.ranks.clear();
    // It names the ranks of one generation only.
    host.worker.worker_addresses = {};
    plans_.insert_or_assign(host.spec.host, std::move(host));
  }
}

void HostPlanner::plan(const ElasticHost& host, Answer answer) {
  if (const auto known = plans_.find(host.name); known != plans_.end()) {
    return loop_.post(
        [answer = std::move(answer), plan = known->second, alive = std::weak_ptr(alive_)] {
          if (alive.lock()) answer(plan);
        });
  }
  wanted_.push_back({{.name = host.name, .slots = std::max(1, host.slots), .user = host.user},
                     std::move(answer)});
  // In a later turn of the loop: several hosts often come together.
  loop_.post([this, alive = std::weak_ptr(alive_)] {
    if (alive.lock()) ask();
  });
}

void HostPlanner::ask() {
  if (planning_ || wanted_.empty()) return;
  const auto count = one_by_one_ ? std::size_t{1} : wanted_.size();
  const auto end = wanted_.begin() + static_cast<std::ptrdiff_t>(count);
  asked_.assign(std::make_move_iterator(wanted_.begin()), std::make_move_iterator(end));
  wanted_.erase(wanted_.begin(), end);
  if (wanted_.empty()) one_by_one_ = false;
  request_.joining->hosts = {};
  for (const auto& one : asked_) request_.joining->hosts.add(one.host);
  planning_.emplace(loop_, request_, [this](Result<JobPlan>& plan) { take(plan); });
}

void HostPlanner::take(Result<JobPlan>& plan) {
  planning_.reset();
  auto asked = std::exchange(asked_, {});
  if (!plan && asked.size() > 1) {
    one_by_one_ = true;
    wanted_.insert(wanted_.begin(), std::make_move_iterator(asked.begin()),
                   std::make_move_iterator(asked.end()));
  } else {
    answer_all(std::move(asked), plan);
  }
  ask();
}

void HostPlanner::answer_all(std::vector<Wanted> wanted, const Result<JobPlan>& plan) {
  if (plan) keep_all(*plan);
  for (const auto& one : wanted) {
    if (!plan) {
      one.answer(Failure(plan.error()));
    } else if (const auto known = plans_.find(one.host.name); known != plans_.end()) {
      one.answer(known->second);
    } else {
      one.answer(fail(Errc::unavailable, "it got no place in the plan"));
    }
  }
}

}  // namespace horo::launcher
