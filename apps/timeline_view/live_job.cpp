// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/live_job.hpp"

#include <optional>

#include "apps/timeline_view/entries.hpp"
#include "timeline/live_ranks.hpp"

namespace horo::apps {

namespace {

std::vector<timeline::LiveRanks::Memory> borrow(const std::vector<JobMemory>& memories) {
  std::vector<timeline::LiveRanks::Memory> borrowed;
  for (const auto& memory : memories)
    borrowed.push_back({.fd = memory.fd.value(), .regions = memory.regions});
  return borrowed;
}

}  // namespace

class LiveJob::Impl {
 public:
  explicit Impl(std::vector<JobMemory> memories)
      : memories_(std::move(memories)), ranks_(borrow(memories_)) {
    find_ranks();
  }

  LiveView refresh(Duration window);
  std::vector<int> processes() const;

 private:
  void find_ranks() {
    if (ranks_.find_ranks()) matcher_.emplace(ignored_, ranks_.sources().size());
  }

  const std::vector<JobMemory> memories_;
  timeline::LiveRanks ranks_;
  Analysis ignored_{{}, 0};
  std::optional<EntryMatcher> matcher_;
};

LiveView LiveJob::Impl::refresh(Duration window) {
  find_ranks();
  Analysis analysis({}, 0);
  matcher_->give_to(analysis);
  for (const auto& source : ranks_.sources())
    analysis.saw_rank(source->rank(), source->identity().host_text());
  auto seen = ranks_.refresh(
      window, [this](const auto& source, const auto& record) { matcher_->take(source, record); });
  matcher_->give_to(ignored_);
  return {.job = memories_.front().job,
          .now_ns = seen.now_ns,
          .size = seen.size,
          .rows = std::move(seen.rows),
          .problems = {},
          .others = {},
          .figures = analysis.finish()};
}

std::vector<int> LiveJob::Impl::processes() const {
  std::vector<int> all;
  for (const auto& source : ranks_.sources()) {
    if (const int process = source->process(); process >= 0) all.push_back(process);
  }
  return all;
}

Result<std::unique_ptr<LiveJob>> LiveJob::attach(std::vector<JobMemory> memories) {
  const auto id = memories.front().job;
  std::erase_if(memories, [](const JobMemory& memory) { return memory.elsewhere; });
  if (memories.empty())
    return fail(Errc::not_found, "the ranks of job '{}' are in a container; look at it there", id);
  auto impl = std::make_unique<Impl>(std::move(memories));
  if (impl->processes().empty())
    return fail(Errc::not_found, "the ranks of job '{}' here have ended", id);
  return std::unique_ptr<LiveJob>(new LiveJob(std::move(impl)));
}

LiveJob::LiveJob(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LiveJob::~LiveJob() = default;

LiveView LiveJob::refresh(Duration window) {
  return impl_->refresh(window);
}

std::vector<int> LiveJob::processes() const {
  return impl_->processes();
}

}  // namespace horo::apps
