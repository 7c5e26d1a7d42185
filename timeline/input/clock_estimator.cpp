// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/clock_estimator.hpp"

#include <algorithm>
#include <array>

namespace horo::timeline {

namespace {

constexpr std::size_t kMostCompared = 65536;

void earlier(std::int64_t& to, std::int64_t ns) {
  if (to == 0 || ns < to) to = ns;
}

void later(std::int64_t& to, std::int64_t ns) {
  to = std::max(to, ns);
}

bool is_given_by_all(const Begin& begin) {
  const auto kind = operation_name(begin.operation);
  // A payload that travels with the marks is contributed at the submission.
  return begin.mover != Mover::none && (kind == "ALLREDUCE" || kind == "ALLGATHER" ||
                                        kind == "REDUCESCATTER" || kind == "ALLTOALL");
}

}  // namespace

void ClockEstimator::take(const RankSource& source, const Record& record) {
  auto& rank = by_rank_[source.rank()];
  if (rank.host.empty()) rank.host = source.identity().host_text();
  const auto now = source.wall_ns(record.ticks);
  if (record.kind == RecordKind::submit) rank.submitted[{record.set, record.id}] = now;
  if (record.kind == RecordKind::end) end(rank, {record.set, record.x}, now);
  if (record.kind == RecordKind::begin) {
    const auto what = decode_begin(record);
    rank.last = {what.set, what.entry};
    if (entries_.size() >= kMostCompared) entries_.erase(entries_.begin());
    auto& entry = entries_[rank.last];
    entry.needs_all = is_given_by_all(what);
    auto& part = entry.parts[rank.host];
    earlier(part.begun_first, now);
    later(part.begun_last, now);
  }
  if (record.kind == RecordKind::members) {
    std::array<std::uint32_t, kMembersPerRecord> ids{};
    const auto count = decode_members(record, ids);
    const auto entry = entries_.find(rank.last);
    for (std::size_t i = 0; entry != entries_.end() && i < count; ++i) {
      const auto submitted = rank.submitted.find({record.set, ids.at(i)});
      if (submitted == rank.submitted.end()) continue;
      later(entry->second.parts[rank.host].submitted_last, submitted->second);
      rank.submitted.erase(submitted);
    }
  }
}

void ClockEstimator::end(Rank& rank, const Key& key, std::int64_t now) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  auto& entry = found->second;
  earlier(entry.parts[rank.host].ended_first, now);
  if (++entry.ended < ranks_) return;
  compare(entry);
  ++entries_seen_;
  entries_.erase(found);
}

namespace {

void raise(std::optional<std::int64_t>& bound, std::int64_t to) {
  bound = std::max(bound.value_or(to), to);
}

void lower(std::optional<std::int64_t>& bound, std::int64_t to) {
  bound = std::min(bound.value_or(to), to);
}

}  // namespace

void ClockEstimator::compare(const Entry& entry) {
  const auto found = entry.parts.find(reference_);
  if (found == entry.parts.end()) return;
  const auto& reference = found->second;
  for (const auto& [host, part] : entry.parts) {
    if (host == reference_) continue;
    auto& bounds = bounds_[host];
    const auto known = [](std::int64_t a, std::int64_t b) { return a != 0 && b != 0; };
    if (known(reference.submitted_last, part.begun_first))
      raise(bounds.least, reference.submitted_last - part.begun_first);
    if (known(part.submitted_last, reference.begun_first))
      lower(bounds.most, reference.begun_first - part.submitted_last);
    if (!entry.needs_all) continue;
    if (known(reference.begun_last, part.ended_first))
      raise(bounds.least, reference.begun_last - part.ended_first);
    if (known(part.begun_last, reference.ended_first))
      lower(bounds.most, reference.ended_first - part.begun_last);
  }
}

ClockShift ClockEstimator::shift_of(const Bounds& bounds) {
  const auto least = bounds.least.value_or(0);
  const auto most = bounds.most.value_or(0);
  // With a bound on one side only, the clock is moved just far enough to respect the bound.
  if (!bounds.least || !bounds.most)
    return {.ns = least > 0 ? least : std::min<std::int64_t>(most, 0), .error_ns = -1};
  const auto half = (most - least) / 2;
  ClockShift shift{.error_ns = half < 0 ? -half : half};
  if (least > 0 || most < 0) shift.ns = least + half;
  return shift;
}

std::map<std::string, ClockShift> ClockEstimator::shifts() const {
  std::map<std::string, ClockShift> shifts;
  for (const auto& [host, bounds] : bounds_) shifts[host] = shift_of(bounds);
  return shifts;
}

}  // namespace horo::timeline
