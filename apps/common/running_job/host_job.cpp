// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/host_job.hpp"

#include <optional>

#include "timeline/input/entry_matcher.hpp"
#include "timeline/live/live_ranks.hpp"

namespace horo::apps {

namespace {

std::vector<timeline::LiveRanks::Memory> borrow(const std::vector<JobMemory>& memories) {
  std::vector<timeline::LiveRanks::Memory> borrowed;
  for (const auto& memory : memories)
    borrowed.push_back({.fd = memory.fd.value(), .regions = memory.regions});
  return borrowed;
}

}  // namespace

class HostJob::Impl {
 public:
  explicit Impl(std::vector<JobMemory> memories)
      : memories_(std::move(memories)), ranks_(borrow(memories_)) {
    find_ranks();
  }

  timeline::LiveView refresh(Duration window);
  std::vector<int> processes() const;

 private:
  void find_ranks() {
    if (ranks_.find_ranks()) matcher_.emplace(ignored_, ranks_.sources().size());
  }

  const std::vector<JobMemory> memories_;
  timeline::LiveRanks ranks_;
  timeline::Analysis ignored_{{}, 0};
  std::optional<timeline::EntryMatcher> matcher_;
};

timeline::LiveView HostJob::Impl::refresh(Duration window) {
  find_ranks();
  timeline::Analysis analysis({}, 0);
  matcher_->set_sink(analysis);
  for (const auto& source : ranks_.sources())
    analysis.saw_rank(source->rank(), source->identity().host_text());
  auto seen = ranks_.refresh(
      window, [this](const auto& source, const auto& record) { matcher_->take(source, record); });
  matcher_->set_sink(ignored_);
  return {.job = memories_.front().job,
          .now_ns = seen.now_ns,
          .size = seen.size,
          .rows = std::move(seen.rows),
          .problems = {},
          .others = {},
          .figures = analysis.finish()};
}

std::vector<int> HostJob::Impl::processes() const {
  std::vector<int> all;
  for (const auto& source : ranks_.sources()) {
    if (const int process = source->process(); process >= 0) all.push_back(process);
  }
  return all;
}

Result<std::unique_ptr<HostJob>> HostJob::attach(std::vector<JobMemory> memories) {
  const auto id = memories.front().job;
  std::erase_if(memories, [](const JobMemory& memory) { return memory.in_other_pid_namespace; });
  if (memories.empty())
    return fail(Errc::not_found, "the ranks of job '{}' are in a container; look at it there", id);
  auto impl = std::make_unique<Impl>(std::move(memories));
  if (impl->processes().empty())
    return fail(Errc::not_found, "the ranks of job '{}' here have ended", id);
  return std::unique_ptr<HostJob>(new HostJob(std::move(impl)));
}

HostJob::HostJob(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HostJob::~HostJob() = default;

timeline::LiveView HostJob::refresh(Duration window) {
  return impl_->refresh(window);
}

std::vector<int> HostJob::processes() const {
  return impl_->processes();
}

}  // namespace horo::apps
