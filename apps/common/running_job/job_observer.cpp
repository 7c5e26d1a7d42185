// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/job_observer.hpp"

#include <algorithm>
#include <chrono>

#include "apps/common/running_job/find_job.hpp"
#include "apps/common/running_job/host_job.hpp"
#include "apps/common/running_job/ssh_views.hpp"
#include "apps/common/running_job/whole_job.hpp"
#include "timeline/record/ticks.hpp"

namespace horo::apps {

namespace {

constexpr Duration kSshTimeout = std::chrono::seconds(20);   ///< For the first views through ssh.
constexpr Duration kAgentTimeout = std::chrono::seconds(1);  ///< For the answers of agents.
constexpr Duration kGpuTimeout = std::chrono::milliseconds(200);  ///< For this host's GPUs.
constexpr Duration kOnlyGpuTimeout = std::chrono::seconds(2);     ///< With --once.

}  // namespace

JobObserver::JobObserver(const WatchOptions& options) : options_(options) {}

JobObserver::~JobObserver() = default;

JobObserver::JobObserver(JobObserver&&) noexcept = default;

Result<JobObserver> JobObserver::open(const WatchOptions& options, Wanted wanted) {
  HORO_TRY(auto found, find_job(options.target));
  if (wanted == Wanted::figures) {
    if (found.memories.empty()) {
      return fail(Errc::not_found,
                  "no rank of job '{}' runs on this host, and --follow shows only ranks of this "
                  "host; horo top shows the ranks of all hosts",
                  found.id);
    }
    found.launcher.reset();
  }
  JobObserver observer(options);
  observer.id_ = found.id;
  if (found.launcher) {
    auto whole = WholeJob::attach(*found.launcher);
    if (!whole && found.memories.empty()) return Failure(std::move(whole).error());
    if (whole) {
      observer.whole_ = std::move(*whole);
    } else {
      observer.problem_ = whole.error().message;
    }
  }
  if (found.memories.empty()) return observer;
  auto here = HostJob::attach(std::move(found.memories));
  if (!here && !observer.problem_.empty()) return fail(Errc::unavailable, "{}", observer.problem_);
  if (!here && observer.whole_ == nullptr) return Failure(std::move(here).error());
  if (here) observer.here_ = std::move(*here);
  if (here && wanted == Wanted::rows) observer.gpus_ = std::make_unique<launcher::HostGpus>();
  return observer;
}

Result<timeline::LiveView> JobObserver::look() {
  auto view = here_ != nullptr ? here_->refresh(options_.interval) : timeline::LiveView{.job = id_};
  if (here_ == nullptr) view.now_ns = timeline::take_anchor().wall_ns;
  if (gpus_ != nullptr) add_gpus(view);
  if (whole_ != nullptr) whole_->add_to(view, std::min(options_.interval, kAgentTimeout));
  if (ssh_ == nullptr && !options_.hosts.empty()) {
    HORO_TRY(ssh_, SshViews::start(options_.hosts, id_, options_.interval, options_.once));
    if (options_.once) ssh_->await(kSshTimeout);
  }
  if (ssh_ != nullptr) ssh_->add_to(view);
  if (!problem_.empty()) view.problems.push_back(problem_);
  view.others = absent_ranks_text(view);
  return view;
}

void JobObserver::add_gpus(timeline::LiveView& view) {
  if (view.rows.empty()) return;
  const auto host = view.rows.front().host;
  auto seen = gpus_->look(view.rows, options_.once ? kOnlyGpuTimeout : kGpuTimeout);
  view.gpus = std::move(seen.gpus);
  for (auto& gpu : view.gpus) gpu.host = host;
  if (!seen.problem.empty())
    view.problems.push_back(fmt::format("GPUs of host {}: {}", host, seen.problem));
}

std::vector<int> JobObserver::processes() const {
  return whole_ != nullptr ? std::vector<int>() : here_->processes();
}

bool JobObserver::ended() const {
  return whole_ != nullptr ? whole_->ended() : here_->processes().empty();
}

std::string JobObserver::end_text() const {
  return whole_ != nullptr ? fmt::format("job {} has ended\n", id_)
                           : fmt::format("the ranks of job {} here have ended\n", id_);
}

std::string JobObserver::absent_ranks_text(const timeline::LiveView& view) const {
  if (whole_ != nullptr) return "the others have recorded nothing yet";
  const auto launcher = view.rows.empty() ? "" : launcher_address(view.rows.front().pid);
  if (launcher.empty())
    return "the others are on other hosts: horo top --hosts HOST,... shows them too";
  return fmt::format(
      "the others are on other hosts: horo top shows all where horo run was started, at {}",
      launcher);
}

}  // namespace horo::apps
