// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/loop/loop.hpp"
#include "launcher/plan/job_plan.hpp"
#include "launcher/plan/job_request.hpp"

namespace horo::launcher {

/// Probes and plans. Blocks: for programs that name hosts, and for ssh's configuration. Fails: as
/// probe_job and plan_job.
Result<JobPlan> probe_and_plan(const JobRequest& request);

/// probe_and_plan on a thread of its own. The loop runs on meanwhile, because agents that wait for
/// their next ranks count a launcher without heartbeats as lost. Thread: the loop's.
class Planning {
 public:
  using Answer = std::function<void(Result<JobPlan>& plan)>;

  /// Calls `answer` once from the loop; it may destroy this, and move the plan away.
  Planning(Loop& loop, JobRequest request, Answer answer);
  /// No answer follows. Programs that still run for the plan are killed. Blocks: until the thread
  /// has ended.
  ~Planning();
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace horo::launcher
