// SPDX-License-Identifier: Apache-2.0
#include "timeline/live/live_rank.hpp"

#include <algorithm>
#include <array>

namespace horo::timeline {

namespace {

/// Most entries that are open at a time. If there are more, their end records were overwritten.
constexpr std::size_t kMostOpen = 4096;

}  // namespace

void LiveRank::open_window(std::int64_t ns) {
  window_ns_ = ns;
  seen_ = {};
  at_window_ = newest_;
  incomplete_ = false;
}

void LiveRank::lose_before(std::int64_t ns) {
  known_from_ = std::max(known_from_, ns);
  submitted_.clear();
  entries_.clear();
  incomplete_ = true;
}

void LiveRank::take(const Record& record, std::int64_t ns, std::int64_t since) {
  last_ns_ = std::max(last_ns_, ns);
  switch (record.kind) {
    case RecordKind::member:
    case RecordKind::submit:
      newest_.try_emplace(record.set, 0);
      if (record.kind == RecordKind::submit && ns >= known_from_)
        submitted_[{record.set, record.id}] = ns;
      return;
    case RecordKind::begin:
      return begin(record, ns);
    case RecordKind::members:
      return add_members(record, ns);
    case RecordKind::end:
      return end(record, ns);
    case RecordKind::wait:
      seen_.waited_ns +=
          static_cast<double>(std::max<std::int64_t>(0, ns - std::max(since, window_ns_)));
      return;
    case RecordKind::mismatch:
      submitted_.erase({record.set, record.id});
      return;
    case RecordKind::stall:
      stalls_ += record.detail;
      return;
    case RecordKind::none:
    case RecordKind::declare:
    case RecordKind::lost:
    case RecordKind::copies:
    case RecordKind::arrival:
    case RecordKind::tuning:
    case RecordKind::generation:
    case RecordKind::device:
    case RecordKind::no_device_times:
      return;
  }
}

void LiveRank::begin(const Record& record, std::int64_t ns) {
  if (ns < known_from_) return;
  const auto what = decode_begin(record);
  if (entries_.size() >= kMostOpen) entries_.clear();
  entries_.push_back({.what = what, .begun = ns, .first = {}, .lacking = what.tensors});
}

void LiveRank::add_members(const Record& record, std::int64_t ns) {
  if (entries_.empty() || entries_.back().lacking == 0) return;
  auto& entry = entries_.back();
  std::array<std::uint32_t, kMembersPerRecord> ids{};
  const auto count = std::min<std::size_t>(decode_members(record, ids), entry.lacking);
  for (std::size_t i = 0; i < count; ++i) {
    const TensorKey key{record.set, ids.at(i)};
    if (!entry.first) entry.first = key;
    submitted_.erase(key);
    begun_[key] = ns;
  }
  entry.lacking -= static_cast<std::uint32_t>(count);
}

void LiveRank::end(const Record& record, std::int64_t ns) {
  auto& newest = newest_[record.set];
  newest = std::max(newest, record.x + 1);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.what.entry == record.x && entry.what.set == record.set;
  });
  if (found == entries_.end()) return;
  if (ns >= window_ns_) {
    ++seen_.operations;
    seen_.bytes += static_cast<double>(found->what.bytes);
  }
  // Entries end in order, so the end records of all older entries were lost.
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.what.set == record.set && entry.what.entry <= record.x;
  });
}

std::optional<LiveRank::Activity> LiveRank::moves() const {
  if (entries_.empty() || !entries_.front().first) return std::nullopt;
  const auto& entry = entries_.front();
  return Activity{.tensor = *entry.first, .tensors = entry.what.tensors, .since = entry.begun};
}

std::optional<LiveRank::Activity> LiveRank::waits() const {
  const auto oldest =
      std::min_element(submitted_.begin(), submitted_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (oldest == submitted_.end()) return std::nullopt;
  return Activity{.tensor = oldest->first,
                  .tensors = static_cast<std::uint32_t>(submitted_.size()),
                  .since = oldest->second};
}

bool LiveRank::has_begun(const TensorKey& tensor, std::int64_t ns) const {
  const auto found = begun_.find(tensor);
  return found != begun_.end() && found->second >= ns;
}

LiveRank::Totals LiveRank::done() const {
  if (!incomplete_ || seen_.operations == 0) return seen_;
  // Entries are numbered, so entries whose records were lost are counted too.
  double operations = 0;
  for (const auto& [set, before] : at_window_)
    operations += static_cast<double>(newest_.at(set) - std::min(newest_.at(set), before));
  if (operations <= seen_.operations) return seen_;
  const double factor = operations / seen_.operations;
  return {.operations = operations,
          .bytes = seen_.bytes * factor,
          .waited_ns = seen_.waited_ns * factor};
}

}  // namespace horo::timeline
