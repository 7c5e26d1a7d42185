// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/elastic/driver/elastic_agents.hpp"
#include "launcher/plan/job_plan.hpp"
#include "launcher/run/planning.hpp"

namespace horo::launcher {

/// Plans how the agents of an elastic job's hosts are started: those that the first plan has, and
/// those that come later, in the same way. Thread: the loop's.
class HostPlanner {
 public:
  using Answer = std::function<void(Result<ElasticHostPlan>)>;

  /// `loop` outlives it. `first`: the job's plan, as JobRunner got it.
  HostPlanner(Loop& loop, JobRequest request, const JobPlan& first);

  /// As PlanHost.
  void plan(const ElasticHost& host, Answer answer);

 private:
  struct Wanted {
    discovery::Host host;
    Answer answer;
  };

  void keep_all(const JobPlan& plan);
  void ask();
  void take(Result<JobPlan>& plan);
  void answer_all(std::vector<Wanted> wanted, const Result<JobPlan>& plan);

  Loop& loop_;
  JobRequest request_;
  std::map<std::string, ElasticHostPlan> plans_;  ///< By host name.
  std::vector<Wanted> wanted_;                    ///< Not asked for yet.
  std::vector<Wanted> asked_;                     ///< Being planned.
  bool one_by_one_ = false;  ///< A plan for several hosts failed: each is planned for itself.
  std::optional<Planning> planning_;
  std::shared_ptr<const int> alive_ = std::make_shared<const int>(0);  ///< For posted tasks.
};

}  // namespace horo::launcher
