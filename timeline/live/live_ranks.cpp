// SPDX-License-Identifier: Apache-2.0
#include "timeline/live/live_ranks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "timeline/record/ticks.hpp"

namespace horo::timeline {

namespace {

bool is_join(const LiveSource& source, const Record& submit) {
  const auto* slot = source.name_of(submit.set, submit.id);
  return slot != nullptr && operation_name(slot->operation) == "JOIN";
}

void take(LiveSource& source, const Record& record, std::int64_t ns) {
  if (record.kind == RecordKind::declare) source.forget_name(record);
  // A rank that joins does not wait for an operation, so its submission is not counted.
  if (record.kind == RecordKind::submit && is_join(source, record)) return;
  source.rank_state().take(record, ns,
                           record.kind == RecordKind::wait ? source.wall_ns(record.x) : 0);
}

/// Whether this rank has not submitted `tensor`, which another rank submitted at `since`.
bool has_not_submitted(const LiveSource& source, const TensorKey& tensor, std::int64_t since) {
  const auto& rank = source.rank_state();
  return (tensor.set == 0 || rank.is_in(tensor.set)) && since >= rank.known_from() &&
         !rank.submitted().contains(tensor) && !rank.has_begun(tensor, since);
}

}  // namespace

std::string_view name(LiveState state) {
  switch (state) {
    case LiveState::starts:
      return "starts";
    case LiveState::computes:
      return "computes";
    case LiveState::waits:
      return "waits";
    case LiveState::moves:
      return "moves";
    case LiveState::stopped:
      return "stopped";
    case LiveState::ended:
      return "ended";
  }
  return "";
}

bool LiveRanks::find_ranks() {
  // A slot of an elastic job that was used before may have another process now.
  const auto gone = std::erase_if(sources_, [this](const auto& source) {
    if (source->read_identity()) return false;
    known_[source->memory()][static_cast<std::size_t>(source->index())] = false;
    return true;
  });
  const auto before = sources_.size();
  known_.resize(memories_.size());
  for (std::size_t m = 0; m < memories_.size(); ++m) {
    known_[m].resize(static_cast<std::size_t>(memories_[m].regions));
    for (int i = 0; i < memories_[m].regions; ++i) {
      const auto region = static_cast<std::size_t>(i);
      if (known_[m][region]) continue;
      auto reader = RegionReader::open(memories_[m].fd, i);
      if (!reader) continue;
      known_[m][region] = true;
      sources_.push_back(std::make_unique<LiveSource>(*reader, m));
    }
  }
  std::sort(sources_.begin(), sources_.end(),
            [](const auto& a, const auto& b) { return a->rank() < b->rank(); });
  return gone != 0 || sources_.size() != before;
}

void LiveRanks::read(const Anchor& now, std::int64_t window_from, const RecordCallback& on_record) {
  const auto until = static_cast<std::uint64_t>(now.ticks);
  for (auto& source : sources_) source->rank_state().open_window(window_from);
  if (!on_record) {  // Without a common order, one rank's records at a time need less memory.
    for (auto& source : sources_) {
      for (const auto& record : source->drain(until, now))
        take(*source, record, source->wall_ns(record.ticks));
    }
    return;
  }

  struct Next {
    std::int64_t ns;
    LiveSource* source;
    Record record;
  };

  std::vector<Next> all;
  for (auto& source : sources_) {
    for (const auto& record : source->drain(until, now))
      all.push_back({source->wall_ns(record.ticks), source.get(), record});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Next& a, const Next& b) { return a.ns < b.ns; });
  for (const auto& next : all) {
    on_record(*next.source, next.record);
    take(*next.source, next.record, next.ns);
  }
}

LiveRanks::View LiveRanks::refresh(Duration window, const RecordCallback& on_record) {
  const auto now = take_anchor();
  const auto from = viewed_ns_ != 0 ? viewed_ns_ : now.wall_ns - window.count();
  read(now, from, on_record);
  viewed_ns_ = now.wall_ns;
  View view{.now_ns = now.wall_ns, .size = 0, .rows = {}};
  const double seconds = std::max(1e-3, static_cast<double>(now.wall_ns - from) / 1e9);
  const auto waited_for = wanted();
  for (const auto& source : sources_) {
    view.size = std::max(view.size, source->identity().size);
    auto& row = view.rows.emplace_back(row_of(*source, now.wall_ns, seconds));
    for (const auto& [tensor, since] : waited_for) {
      if (has_not_submitted(*source, tensor, since))
        row.lag_ns = std::max(row.lag_ns, now.wall_ns - since);
    }
  }
  return view;
}

LiveRanks::Wanted LiveRanks::wanted() const {
  Wanted first;
  for (const auto& source : sources_) {
    for (const auto& [tensor, since] : source->rank_state().submitted()) {
      const auto [known, fresh] = first.try_emplace(tensor, since);
      if (!fresh) known->second = std::min(known->second, since);
    }
  }
  return first;
}

LiveRow LiveRanks::row_of(const LiveSource& source, std::int64_t now, double seconds) const {
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

void LiveRanks::describe(const LiveSource& source, std::int64_t now, LiveRow& row) const {
  const auto& rank = source.rank_state();
  const auto name_of = [&](const TensorKey& tensor) {
    const auto* slot = source.name_of(tensor.set, tensor.id);
    return slot != nullptr ? std::string(slot->name()) : fmt::format("tensor {}", tensor.id);
  };
  row.for_ns = rank.last_ns() == 0 ? 0 : now - rank.last_ns();
  row.state = rank.last_ns() == 0 ? LiveState::starts : LiveState::computes;
  if (const auto moves = rank.moves()) {
    row.state = LiveState::moves;
    row.tensor = name_of(moves->tensor);
    row.tensors = moves->tensors;
    row.for_ns = now - moves->since;
  } else if (const auto waits = rank.waits()) {
    row.state = LiveState::waits;
    row.tensor = name_of(waits->tensor);
    row.tensors = waits->tensors;
    row.for_ns = now - waits->since;
    for (const auto& other : sources_) {
      if (other->rank() != source.rank() && has_not_submitted(*other, waits->tensor, waits->since))
        row.missing.push_back(other->rank());
    }
  }
  const char process = source.process_state();
  if (process == 'T' || process == 't') row.state = LiveState::stopped;
  if (process == '\0') row.state = LiveState::ended;
}

}  // namespace horo::timeline
