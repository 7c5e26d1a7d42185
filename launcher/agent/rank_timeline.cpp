// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rank_timeline.hpp"

#include <fcntl.h>
#include <mutex>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/log.hpp"
#include "base/signals_blocked.hpp"
#include "timeline/save.hpp"

namespace horo::launcher {

std::shared_ptr<const RankTimeline> RankTimeline::make(const AgentSpec& spec) {
  const auto ranks = static_cast<int>(spec.ranks.size());
  const auto made = timeline::make_regions(ranks);
  if (!made) {
    log::debug("agent", "no timeline on host '{}': {}", spec.host, made.error().message);
    return nullptr;
  }
  UniqueFd fd(dup3(made->value(), kTimelineDescriptor, O_CLOEXEC));
  if (!fd) return nullptr;  // The limit of descriptors is below it.
  return std::shared_ptr<const RankTimeline>(new RankTimeline(std::move(fd), ranks));
}

SavedTimeline RankTimeline::save(const std::string& directory) const {
  auto saved = timeline::save_regions(fd_.value(), ranks_, directory);
  if (!saved) return {.directory = directory, .problem = std::move(saved).error().message};
  return {.ranks = saved->ranks,
          .directory = std::move(saved->directory),
          .problem = std::move(saved->problem)};
}

/// What loop and thread share: the thread may come to its end when nobody wants its answer, and the
/// loop is no more.
class TimelineSaving::State : public std::enable_shared_from_this<State> {
 public:
  State(Loop& loop, Answer settle) : loop_(&loop), settle_(std::move(settle)) {}

  void answer(const SavedTimeline& saved) {
    const std::scoped_lock lock(mutex_);
    if (loop_ == nullptr) return;
    loop_->post([self = shared_from_this(), saved] {
      if (self->loop_ != nullptr) self->settle_(saved);
    });
  }

  void abandon() {
    const std::scoped_lock lock(mutex_);
    loop_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Loop* loop_;  ///< Null once nobody wants an answer; changes on the loop's thread only.
  const Answer settle_;
};

TimelineSaving::TimelineSaving(Loop& loop, std::shared_ptr<const RankTimeline> timeline,
                               std::string directory, Duration limit, Answer answer)
    : directory_(std::move(directory)),
      answer_(std::move(answer)),
      state_(std::make_shared<State>(loop, [this](const auto& saved) { settle(saved); })) {
  limit_ = loop.after(limit, [this, limit] {
    settle({.directory = directory_,
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
  settle({.directory = directory_,
          .problem = fmt::format("writing to {} was given up, all was to end at once", where())});
}

std::string TimelineSaving::where() const {
  return directory_.empty() ? "a folder in /tmp" : directory_;
}

/// The answer may destroy this.
void TimelineSaving::settle(const SavedTimeline& saved) {
  limit_.reset();
  state_->abandon();
  if (const auto answer = std::exchange(answer_, nullptr)) answer(saved);
}

}  // namespace horo::launcher
