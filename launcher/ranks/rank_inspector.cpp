// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_inspector.hpp"

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <malloc.h>
#include <optional>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/mutex.hpp"
#include "base/signals_blocked.hpp"
#include "launcher/host_gpus.hpp"
#include "timeline/live/live_ranks.hpp"
#include "timeline/record/save_timelines.hpp"

namespace horo::launcher {

namespace {

constexpr std::size_t kMostAsked = 16;
constexpr auto kIdle =
    std::chrono::seconds(10);  ///< Time without questions after which the thread ends.
constexpr auto kLeastPause = std::chrono::milliseconds(50);  ///< Between two inspections.
constexpr Duration kWindow = std::chrono::seconds(1);
constexpr Duration kGpuTimeout = std::chrono::milliseconds(200);  ///< A viewer waits for a second.
constexpr int kNiceness = 10;

/// Cuts a text to `most` bytes, but not within a character.
void cut(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U) --most;
  text.resize(most);
}

/// A file without a name, so that nothing of it is left when this process ends in any way.
Result<UniqueFd> nameless_file() {
  std::string path = "/tmp/horo-snapshot-XXXXXX";
  UniqueFd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd) return fail_errno(errno, "a file in /tmp for the snapshot");
  unlink(path.c_str());
  return fd;
}

Status put(const UniqueFd& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = write(to.value(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail_errno(written < 0 ? errno : ENOSPC, "the snapshot in /tmp");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

/// The state of the thread, which no other thread uses.
class Inspection {
 public:
  Inspection(std::shared_ptr<const RankTimeline> timeline, HostGpus& gpus)
      : timeline_(std::move(timeline)),
        gpus_(gpus),
        ranks_({{.fd = timeline_->descriptor(), .regions = timeline_->ranks()}}) {}

  Answer answer(const Look&) {
    const auto now = SteadyClock::instance().now();
    if (looked_ && now - *looked_ < kLeastPause) return seen_;
    looked_ = now;
    ranks_.find_ranks();
    seen_.rows = ranks_.refresh(kWindow).rows;
    for (auto& row : seen_.rows) bound(row);
    auto gpus = gpus_.look(seen_.rows, kGpuTimeout);
    seen_.gpus = std::move(gpus.gpus);
    seen_.gpu_problem = std::move(gpus.problem);
    if (seen_.gpus.size() > kMostGpus) seen_.gpus.resize(kMostGpus);
    for (auto& gpu : seen_.gpus) bound(gpu);
    return seen_;
  }

  /// The bytes are valid until the next call.
  Answer answer(const Fetch& fetch) {
    Piece piece{
        .asker = fetch.asker, .offset = fetch.offset, .size = 0, .problem = {}, .bytes = {}};
    if (fetch.offset == 0) {
      if (const auto taken = take(fetch.asker); !taken) piece.problem = taken.error().message;
    } else if (!file_ || asker_ != fetch.asker) {
      piece.problem = "another viewer has taken another snapshot meanwhile; take it again";
    }
    if (!piece.problem.empty()) return piece;
    piece.size = size_;
    if (fetch.offset < size_) {
      bytes_.resize(std::min<std::uint64_t>(kPieceBytes, size_ - fetch.offset));
      if (pread(file_.value(), bytes_.data(), bytes_.size(), static_cast<off_t>(fetch.offset)) !=
          static_cast<ssize_t>(bytes_.size())) {
        piece.problem = "the snapshot in /tmp cannot be read";
      } else {
        piece.bytes = bytes_;
      }
    }
    return piece;
  }

 private:
  Status take(std::uint32_t asker) {
    file_.reset();
    HORO_TRY(file_, nameless_file());
    asker_ = asker;
    size_ = 0;
    for (int i = 0; i < timeline_->ranks(); ++i) {
      auto content = timeline::snapshot(timeline_->descriptor(), i);
      if (!content && content.error().code == Errc::not_found) continue;
      if (!content) return Failure(std::move(content).error());
      const auto rank = static_cast<std::uint32_t>(content->about.identity.rank);
      const auto file = timeline::encode_file(std::move(*content));
      std::string head;
      for (std::size_t b = 0; b < 4; ++b) head.push_back(static_cast<char>(rank >> (8U * b)));
      for (std::size_t b = 0; b < 8; ++b)
        head.push_back(static_cast<char>(std::uint64_t{file.size()} >> (8U * b)));
      HORO_TRY_STATUS(put(file_, head));
      HORO_TRY_STATUS(put(file_, file));
      size_ += head.size() + file.size();
    }
    return {};
  }

  const std::shared_ptr<const RankTimeline> timeline_;
  HostGpus& gpus_;
  timeline::LiveRanks ranks_;
  std::optional<TimePoint> looked_;
  Viewed seen_;
  UniqueFd file_;
  std::uint32_t asker_ = 0;
  std::uint64_t size_ = 0;
  std::string bytes_;
};

}  // namespace

void bound(timeline::LiveRow& row) {
  if (row.missing.size() > kMostMissing) row.missing.resize(kMostMissing);
  cut(row.tensor, kMostTensorText);
}

void bound(timeline::LiveGpu& gpu) {
  if (gpu.links.size() > kMostGpuLinks) gpu.links.resize(kMostGpuLinks);
  for (auto* const text : {&gpu.name, &gpu.uuid, &gpu.problem}) cut(*text, kMostGpuText);
}

/// Shared by loop and thread, because the thread may outlive the loop.
class RankInspector::State : public std::enable_shared_from_this<State> {
 public:
  State(Loop& loop, std::shared_ptr<const RankTimeline> timeline, Tell tell)
      : timeline_(std::move(timeline)), tell_(std::move(tell)), loop_(&loop) {}

  void ask(const Question& question) {
    const MutexLock lock(mutex_);
    if (asked_.size() >= kMostAsked) return;
    asked_.push_back(question);
    if (std::exchange(works_, true)) return changed_.notify_one();
    try {
      start_quiet_thread([self = shared_from_this()] { self->work(); }).detach();
    } catch (const std::system_error&) {
      works_ = false;  // Without a thread there is no answer, and the viewer asks again.
      asked_.clear();
    }
  }

  void abandon() {
    const MutexLock lock(mutex_);
    loop_ = nullptr;
    changed_.notify_one();
  }

 private:
  void work() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
    {
      Inspection inspection(timeline_, gpus_);
      while (const auto question = next()) {
        std::visit([&](const auto& asked) { post(inspection.answer(asked)); }, *question);
      }
    }
    malloc_trim(0);
  }

  /// Nothing: there are no more questions.
  std::optional<Question> next() {
    const auto until = std::chrono::steady_clock::now() + kIdle;
    MutexLock lock(mutex_);
    while (loop_ != nullptr && asked_.empty() &&
           lock.wait_until(changed_, until) == std::cv_status::no_timeout) {
    }
    if (loop_ == nullptr || asked_.empty()) {
      works_ = false;
      return std::nullopt;
    }
    const auto question = asked_.front();
    asked_.pop_front();
    return question;
  }

  void post(Answer answer) {
    std::string bytes;  // A copy, because the thread will overwrite the original.
    if (const auto* piece = std::get_if<Piece>(&answer)) bytes = piece->bytes;
    const MutexLock lock(mutex_);
    if (loop_ == nullptr) return;
    loop_->post([self = shared_from_this(), answer = std::move(answer),
                 bytes = std::move(bytes)]() mutable {
      if (self->is_abandoned()) return;
      if (auto* piece = std::get_if<Piece>(&answer)) piece->bytes = bytes;
      self->tell_(answer);
    });
  }

  bool is_abandoned() {
    const MutexLock lock(mutex_);
    return loop_ == nullptr;
  }

  const std::shared_ptr<const RankTimeline> timeline_;
  const Tell tell_;
  HostGpus gpus_;  ///< The thread's, while there is one.
  Mutex mutex_;
  std::condition_variable changed_;
  /// Null once answers are dropped. Changes on the loop's thread only.
  Loop* loop_ HORO_GUARDED_BY(mutex_);
  std::deque<Question> asked_ HORO_GUARDED_BY(mutex_);
  bool works_ HORO_GUARDED_BY(mutex_) = false;  ///< The thread exists.
};

RankInspector::RankInspector(Loop& loop, std::shared_ptr<const RankTimeline> timeline, Tell tell)
    : state_(std::make_shared<State>(loop, std::move(timeline), std::move(tell))) {}

RankInspector::~RankInspector() {
  state_->abandon();
}

void RankInspector::ask(const Question& question) {
  state_->ask(question);
}

}  // namespace horo::launcher
