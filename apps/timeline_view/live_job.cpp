// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/live_job.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "apps/timeline_view/entries.hpp"
#include "apps/timeline_view/live_source.hpp"
#include "apps/timeline_view/memories.hpp"
#include "timeline/ticks.hpp"

namespace horo::apps {

using timeline::Record;
using timeline::RecordKind;

namespace {

/// What another rank has been waiting for, and since when.
using Wanted = LiveRank::Submitted;

bool is_join(const LiveSource& source, const Record& submit) {
  const auto* slot = source.name_of(submit.set, submit.id);
  return slot != nullptr && timeline::operation_name(slot->operation) == "JOIN";
}

}  // namespace

class LiveJob::Impl {
 public:
  explicit Impl(std::vector<JobMemory> memories) : memories_(std::move(memories)) {
    look_for_ranks();
  }

  LiveView refresh(Duration window);
  std::vector<int> processes() const;

 private:
  void look_for_ranks();
  void read(const timeline::Anchor& now, std::int64_t window_from);
  LiveRow row_of(const LiveSource& source, std::int64_t now, double seconds) const;
  void describe(const LiveSource& source, std::int64_t now, LiveRow& row) const;
  Wanted wanted() const;
  static bool lacks(const LiveSource& source, const TensorKey& tensor, std::int64_t since);

  const std::vector<JobMemory> memories_;
  std::vector<std::pair<std::size_t, std::unique_ptr<LiveSource>>> sources_;  ///< With its memory.
  Analysis ignored_{{}, 0};
  std::unique_ptr<Analysis> analysis_;
  std::optional<EntryMatcher> matcher_;
  std::int64_t viewed_ns_ = 0;  ///< The view before; 0: none.
};

/// Ranks begin to record one after the other.
void LiveJob::Impl::look_for_ranks() {
  const auto before = sources_.size();
  for (std::size_t m = 0; m < memories_.size(); ++m) {
    for (int i = 0; i < memories_[m].regions; ++i) {
      const bool known = std::any_of(sources_.begin(), sources_.end(), [&](const auto& source) {
        return source.first == m && source.second->index() == i;
      });
      if (known) continue;
      auto reader = timeline::RegionReader::open(memories_[m].fd.value(), i);
      if (reader) sources_.emplace_back(m, std::make_unique<LiveSource>(*reader));
    }
  }
  if (sources_.size() == before) return;
  std::sort(sources_.begin(), sources_.end(),
            [](const auto& a, const auto& b) { return a.second->rank() < b.second->rank(); });
  matcher_.emplace(ignored_, sources_.size());
}

void LiveJob::Impl::read(const timeline::Anchor& now, std::int64_t window_from) {
  struct Next {
    std::int64_t ns;
    LiveSource* source;
    Record record;
  };

  std::vector<Next> all;
  for (auto& [memory, source] : sources_) {
    source->rank_state().open_window(window_from);
    for (const auto& record : source->drain(static_cast<std::uint64_t>(now.ticks), now))
      all.push_back({source->wall_ns(record.ticks), source.get(), record});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Next& a, const Next& b) { return a.ns < b.ns; });
  for (const auto& next : all) {
    auto& source = *next.source;
    matcher_->take(source, next.record);
    if (next.record.kind == RecordKind::declare) source.forget_name(next.record);
    // A join is for others to wait for, and belongs to no operation.
    if (next.record.kind == RecordKind::submit && is_join(source, next.record)) continue;
    source.rank_state().take(
        next.record, next.ns,
        next.record.kind == RecordKind::wait ? source.wall_ns(next.record.x) : 0);
  }
}

LiveView LiveJob::Impl::refresh(Duration window) {
  look_for_ranks();
  const auto now = timeline::take_anchor();
  const auto from = viewed_ns_ != 0 ? viewed_ns_ : now.wall_ns - window.count();
  Analysis analysis({}, 0);
  matcher_->give_to(analysis);
  for (const auto& [memory, source] : sources_)
    analysis.saw_rank(source->rank(), source->identity().host_text());
  read(now, from);
  matcher_->give_to(ignored_);
  viewed_ns_ = now.wall_ns;
  LiveView view{.job = memories_.front().job, .now_ns = now.wall_ns};
  const double seconds = std::max(1e-3, static_cast<double>(now.wall_ns - from) / 1e9);
  const auto waited_for = wanted();
  for (const auto& [memory, source] : sources_) {
    view.size = std::max(view.size, source->identity().size);
    view.rows.push_back(row_of(*source, now.wall_ns, seconds));
    for (const auto& [tensor, since] : waited_for) {
      if (lacks(*source, tensor, since))
        view.rows.back().lag_ns = std::max(view.rows.back().lag_ns, now.wall_ns - since);
    }
  }
  view.figures = analysis.finish();
  return view;
}

Wanted LiveJob::Impl::wanted() const {
  Wanted first;
  for (const auto& [memory, source] : sources_) {
    for (const auto& [tensor, since] : source->rank_state().submitted()) {
      const auto [known, fresh] = first.try_emplace(tensor, since);
      if (!fresh) known->second = std::min(known->second, since);
    }
  }
  return first;
}

/// Whether a rank keeps the others waiting that submitted `tensor` at `since`.
bool LiveJob::Impl::lacks(const LiveSource& source, const TensorKey& tensor, std::int64_t since) {
  const auto& rank = source.rank_state();
  return (tensor.set == 0 || rank.is_in(tensor.set)) && since >= rank.known_from() &&
         !rank.submitted().contains(tensor) && !rank.has_begun(tensor, since);
}

LiveRow LiveJob::Impl::row_of(const LiveSource& source, std::int64_t now, double seconds) const {
  const auto done = source.rank_state().done();
  LiveRow row{.rank = source.rank(),
              .host = source.identity().host_text(),
              .pid = source.identity().pid,
              .operations_per_s = done.operations / seconds,
              .bytes_per_s = done.bytes / seconds,
              .waiting = std::min(1.0, done.waited_ns / 1e9 / seconds),
              .stalls = source.rank_state().stalls(),
              .lost = source.lost()};
  describe(source, now, row);
  row.for_ns = std::max<std::int64_t>(0, row.for_ns);
  return row;
}

void LiveJob::Impl::describe(const LiveSource& source, std::int64_t now, LiveRow& row) const {
  const auto& rank = source.rank_state();
  const auto name = [&](const TensorKey& tensor) {
    const auto* slot = source.name_of(tensor.set, tensor.id);
    return slot != nullptr ? std::string(slot->name()) : fmt::format("tensor {}", tensor.id);
  };
  row.for_ns = rank.last_ns() == 0 ? 0 : now - rank.last_ns();
  row.state = rank.last_ns() == 0 ? LiveState::starts : LiveState::computes;
  if (const auto moves = rank.moves()) {
    row.state = LiveState::moves;
    row.tensor = name(moves->tensor);
    row.tensors = moves->tensors;
    row.for_ns = now - moves->since;
  } else if (const auto waits = rank.waits()) {
    row.state = LiveState::waits;
    row.tensor = name(waits->tensor);
    row.tensors = waits->tensors;
    row.for_ns = now - waits->since;
    for (const auto& [memory, other] : sources_) {
      if (other->rank() != source.rank() && lacks(*other, waits->tensor, waits->since))
        row.missing.push_back(other->rank());
    }
  }
  const char process = source.process_state();
  if (process == 'T' || process == 't') row.state = LiveState::stopped;
  if (process == '\0') row.state = LiveState::ended;
}

std::vector<int> LiveJob::Impl::processes() const {
  std::vector<int> all;
  for (const auto& [memory, source] : sources_) {
    if (const int process = source->process(); process >= 0) all.push_back(process);
  }
  return all;
}

Result<std::unique_ptr<LiveJob>> LiveJob::attach(const std::string& job) {
  HORO_TRY(auto memories, memories_of(job));
  const auto id = memories.front().job;
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
