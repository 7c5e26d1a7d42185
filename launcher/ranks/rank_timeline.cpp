// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_timeline.hpp"

#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/signals_blocked.hpp"
#include "timeline/record/save_timelines.hpp"

namespace horo::launcher {

std::shared_ptr<const RankTimeline> RankTimeline::make(const AgentSpec& spec) {
  const auto ranks = spec.places();
  auto made = timeline::make_regions(ranks);
  if (!made) {
    log::debug("agent", "no timeline on host '{}': {}", spec.host, made.error().message);
    return nullptr;
  }
  if (dup3(made->value(), kTimelineDescriptor, O_CLOEXEC) < 0)
    return nullptr;  // The limit of descriptors is too low.
  return std::shared_ptr<const RankTimeline>(new RankTimeline(std::move(*made), ranks));
}

SavedTimeline RankTimeline::save(const std::string& directory) const {
  auto saved = timeline::save_regions(fd_.value(), ranks_, directory);
  if (!saved) return {.directory = directory, .problem = std::move(saved).error().message};
  return {.ranks = saved->ranks,
          .directory = std::move(saved->directory),
          .problem = std::move(saved->problem)};
}

/// Shared by loop and thread, because the thread may end after its answer was dropped and the loop
/// destroyed.
class TimelineSaving::State : public std::enable_shared_from_this<State> {
 public:
  State(Loop& loop, Answer finish) : finish_(std::move(finish)), loop_(&loop) {}

  void answer(const SavedTimeline& saved) {
    const MutexLock lock(mutex_);
    if (loop_ == nullptr) return;
    loop_->post([self = shared_from_this(), saved] {
      if (!self->is_abandoned()) self->finish_(saved);
    });
  }

  void abandon() {
    const MutexLock lock(mutex_);
    loop_ = nullptr;
  }

 private:
  bool is_abandoned() {
    const MutexLock lock(mutex_);
    return loop_ == nullptr;
  }

  const Answer finish_;
  Mutex mutex_;
  /// Null once the answer is dropped. Changes on the loop's thread only.
  Loop* loop_ HORO_GUARDED_BY(mutex_);
};

TimelineSaving::TimelineSaving(Loop& loop, std::shared_ptr<const RankTimeline> timeline,
                               std::string directory, Duration limit, Answer answer)
    : directory_(std::move(directory)),
      answer_(std::move(answer)),
      state_(std::make_shared<State>(loop, [this](const auto& saved) { finish(saved); })) {
  limit_ = loop.after(limit, [this, limit] {
    finish({.directory = directory_,
            .problem = fmt::format(
                "writing to {} takes longer than {:g} s; give --timeline-directory on a "
                "faster disk",
                where(), std::chrono::duration<double>(limit).count())});
  });
  try {
    start_quiet_thread([state = state_, timeline = std::move(timeline), to = directory_] {
      state->answer(timeline->save(to));
    }).detach();
  } catch (const std::system_error& error) {
    state_->answer(
        {.directory = directory_,
         .problem = fmt::format("no thread for it; raise ulimit -u ({})", error.code().message())});
  }
}

TimelineSaving::~TimelineSaving() {
  state_->abandon();
}

void TimelineSaving::give_up() {
  finish({.directory = directory_,
          .problem = fmt::format("writing to {} was cancelled, because the job had to end at once",
                                 where())});
}

std::string TimelineSaving::where() const {
  return directory_.empty() ? "a folder in /tmp" : directory_;
}

/// The handler may destroy this.
void TimelineSaving::finish(const SavedTimeline& saved) {
  limit_.reset();
  state_->abandon();
  if (const auto answer = std::exchange(answer_, nullptr)) answer(saved);
}

}  // namespace horo::launcher
