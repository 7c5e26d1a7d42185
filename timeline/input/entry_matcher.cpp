// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/entry_matcher.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace horo::timeline {

namespace {

constexpr std::size_t kMostPending = 4096;
constexpr std::int64_t kMostGap =
    86'400'000'000'000;  ///< One day; larger offsets are not believed.

std::uint64_t tensor_of(std::uint16_t set, std::uint32_t id) {
  return std::uint64_t{set} << 32U | id;
}

}  // namespace

EntryMatcher::RankState& EntryMatcher::state_of(const RankSource& file) {
  const auto [found, fresh] = ranks_.try_emplace(file.rank());
  if (fresh) {
    found->second.file = &file;
    found->second.host = file.identity().host_text();
  }
  return found->second;
}

void EntryMatcher::take(const RankSource& file, const Record& record) {
  const int rank = file.rank();
  auto& state = state_of(file);
  const auto now = file.wall_ns(record.ticks) + state.offset;
  if (state.first == 0) state.first = now;
  switch (record.kind) {
    case RecordKind::submit:
      return submit(state, rank, record, now);
    case RecordKind::begin:
      return begin(file, record, now);
    case RecordKind::members:
      return add_members(file, record);
    case RecordKind::end:
      return end(file, record, now);
    case RecordKind::copies:
      return copied(file, record);
    case RecordKind::wait:
      return sink_->waited(rank, {file.wall_ns(record.x) + state.offset, now});
    case RecordKind::mismatch:
      return mismatch(file, record, now);
    case RecordKind::stall:
      return sink_->stalled(rank, record.detail, now);
    case RecordKind::lost:
      lost_ = std::min(lost_.value_or(now), now);
      return sink_->lost(rank, static_cast<int>(record.id), now);
    case RecordKind::member:
      return static_cast<void>(members_[record.set].insert(rank));
    case RecordKind::tuning:
      return tuned(state, rank, record, now);
    case RecordKind::generation:
      return sink_->entered(mark_of(record, now));
    case RecordKind::device:
    case RecordKind::no_device_times:
      return worked(file, record, now);
    case RecordKind::none:
    case RecordKind::declare:
    case RecordKind::arrival:  // The other host's own records say more.
      return;
  }
}

GenerationMark EntryMatcher::mark_of(const Record& record, std::int64_t now) {
  const auto entered = decode_generation(record);
  return {.ns = now,
          .generation = entered.generation,
          .ranks = entered.ranks,
          .survivors = entered.survivors};
}

/// All ranks change their tuning at the same entry, so the changes of one rank are enough.
void EntryMatcher::tuned(RankState& state, int rank, const Record& record, std::int64_t now) {
  const auto changes = state.tuning.take(record);
  if (!changes) return;
  if (tuned_ < 0) tuned_ = rank;
  if (rank == tuned_) sink_->tuned({.ns = now, .changes = *changes});
}

void EntryMatcher::submit(RankState& state, int rank, const Record& record, std::int64_t now) {
  state.submitted[tensor_of(record.set, record.id)] = now;
  state.last_submitted = now;
  if (stepper_ < 0) stepper_ = rank;
  if (rank != stepper_) return;
  if (const auto step = steps_.submitted(tensor_of(record.set, record.id), now))
    sink_->stepped(*step);
}

void EntryMatcher::begin(const RankSource& file, const Record& record, std::int64_t now) {
  const auto what = decode_begin(record);
  const Key key{what.set, what.entry};
  auto& state = ranks_[file.rank()];
  state.last = key;
  auto& pending = pending_[key];
  // Entry numbers start again in each session of a process.
  if (const auto mine = pending.parts.find(file.rank());
      mine != pending.parts.end() && mine->second.begun != 0) {
    emit(pending);
    pending = {};
  }
  if (pending.parts.empty()) {
    pending.what = what;
    pending.job_size = file.identity().size;
  }
  pending.what.bytes = std::max(pending.what.bytes, what.bytes);
  pending.parts[file.rank()].begun = now;
  members_[what.set].insert(file.rank());
  if (pending_.size() > kMostPending) {
    auto oldest = pending_.extract(pending_.begin());
    emit(oldest.mapped());
  }
}

void EntryMatcher::add_members(const RankSource& file, const Record& record) {
  auto& state = ranks_[file.rank()];
  const auto found = pending_.find(state.last);
  if (found == pending_.end()) return;
  auto& pending = found->second;
  auto& part = pending.parts[file.rank()];
  std::array<std::uint32_t, kMembersPerRecord> ids{};
  const auto count = decode_members(record, ids);
  for (std::size_t i = 0; i < count; ++i) {
    const auto submitted = state.submitted.find(tensor_of(record.set, ids.at(i)));
    if (submitted != state.submitted.end())
      part.arrived = std::max(part.arrived, std::exchange(submitted->second, 0));
    if (pending.named_by < 0) pending.named_by = file.rank();
    const bool wanted = pending.members.empty() || sink_->wants_members();
    if (pending.named_by != file.rank() || !wanted) continue;
    const auto* slot = file.name_of(record.set, ids.at(i));
    pending.members.push_back(slot != nullptr ? std::string(slot->name())
                                              : fmt::format("tensor {}", ids.at(i)));
  }
}

void EntryMatcher::mismatch(const RankSource& file, const Record& record, std::int64_t now) {
  ranks_[file.rank()].submitted.erase(tensor_of(record.set, record.id));
  const auto* slot = file.name_of(record.set, record.id);
  sink_->mismatched(
      file.rank(),
      slot != nullptr ? std::string(slot->name()) : fmt::format("tensor {}", record.id), now);
}

void EntryMatcher::copied(const RankSource& file, const Record& record) {
  const auto copies = decode_copies(record);
  const auto found = pending_.find({copies.set, copies.entry});
  if (found == pending_.end()) return;
  auto& part = found->second.parts[file.rank()];
  const auto now = file.wall_ns(record.ticks);
  part.packed_ns = now - file.wall_ns(record.ticks - copies.in);
  part.unpacked_ns = now - file.wall_ns(record.ticks - copies.out);
}

void EntryMatcher::worked(const RankSource& file, const Record& record, std::int64_t now) {
  if (record.kind == RecordKind::no_device_times)
    return sink_->no_device_times(file.rank(), text(NoDeviceTimes{record.detail}), now);
  const auto phase = decode_device_phase(record);
  const auto found = pending_.find({phase.set, phase.entry});
  if (found == pending_.end()) return;
  const auto lasted = static_cast<std::int64_t>(phase.lasted_ns);
  const auto from = now - static_cast<std::int64_t>(phase.before_ns);
  found->second.parts[file.rank()].device_ns += lasted;
  sink_->worked(
      {.rank = file.rank(),
       .activity = activity_name(phase.phase, operation_name(found->second.what.operation)),
       .when = {from, from + lasted}});
}

void EntryMatcher::end(const RankSource& file, const Record& record, std::int64_t now) {
  const Key key{record.set, record.x};
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  auto& state = ranks_[file.rank()];
  auto& part = found->second.parts[file.rank()];
  if (part.begun == 0) return;  // The begin record was overwritten.
  part.moved = std::max(part.begun, state.last_end);
  if (part.ended == 0) ++found->second.ended;
  part.ended = state.last_end = now;
  sink_->communicated(file.rank(), {part.moved, part.ended});
  if (!whole(key, found->second)) return;
  emit(found->second);
  pending_.erase(found);
}

bool EntryMatcher::whole(const Key& key, const Pending& pending) const {
  const auto members = members_.find(key.set);
  const auto expected = key.set == 0 || members == members_.end() ? files_ : members->second.size();
  return pending.ended >= expected;
}

/// Corrects clocks. No rank begins an entry before all have submitted it, so a host on which it
/// seems to begin earlier has a clock that is behind.
void EntryMatcher::align(const Pending& pending) {
  struct Edges {
    std::int64_t arrived = 0;  ///< When the last rank arrived.
    std::int64_t begun = std::numeric_limits<std::int64_t>::max();
  };

  std::map<std::string_view, Edges> hosts;
  for (const auto& [rank, part] : pending.parts) {
    auto& edges = hosts[ranks_[rank].host];
    edges.arrived = std::max(edges.arrived, part.arrived);
    if (part.begun != 0) edges.begun = std::min(edges.begun, part.begun);
  }
  if (hosts.size() < 2) return;
  // The two latest hosts, so that each host is compared with the latest other host.
  std::pair<std::int64_t, std::string_view> latest;
  std::pair<std::int64_t, std::string_view> second;
  for (const auto& [host, edges] : hosts) {
    const std::pair seen(edges.arrived, host);
    if (seen > latest) {
      second = std::exchange(latest, seen);
    } else {
      second = std::max(second, seen);
    }
  }
  for (const auto& [host, edges] : hosts) {
    const auto& [arrived, other] = latest.second == host ? second : latest;
    if (arrived <= edges.begun || arrived - edges.begun > kMostGap) continue;
    return move_clock(std::string(host), other, arrived - edges.begun);
  }
}

void EntryMatcher::move_clock(const std::string& host, std::string_view other, std::int64_t by_ns) {
  auto& offset = offsets_[host];
  if (offset == 0) {
    sink_->warn(
        fmt::format("the clock of host {} is behind that of {} by {:.3f} ms or more; its records "
                    "are moved",
                    host, other, static_cast<double>(by_ns) / 1e6));
  }
  offset += by_ns;
  for (auto& [rank, state] : ranks_) {
    if (state.host == host) state.offset = offset;
  }
}

/// Fills in the phases of an operation from the parts of its ranks. Leaves `ended` 0 where no part
/// has ended.
void EntryMatcher::add_phases(const std::map<int, RankPart>& parts, ObservedOperation& operation) {
  constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
  operation.submitted = operation.begun = kNever;
  std::int64_t packed = 0;
  std::int64_t unpacked = 0;
  for (const auto& [rank, part] : parts) {
    if (part.ended == 0) continue;
    if (part.arrived != 0) {
      operation.arrivals.push_back({rank, part.arrived});
      operation.submitted = std::min(operation.submitted, part.arrived);
      operation.agreed = std::max(operation.agreed, part.arrived);
    }
    operation.begun = std::min(operation.begun, part.moved);
    operation.ended = std::max(operation.ended, part.ended);
    packed = std::max(packed, part.packed_ns);
    unpacked = std::max(unpacked, part.unpacked_ns);
    operation.device_ns = std::max(operation.device_ns, part.device_ns);
  }
  if (operation.ended == 0) return;
  if (operation.arrivals.size() < 2) operation.agreed = operation.begun;
  operation.submitted = std::min(operation.submitted, operation.begun);
  operation.begun = std::max(operation.begun, operation.agreed);
  operation.ended = std::max(operation.ended, operation.begun);
  // The time that is not spent copying counts as data movement; the two may overlap.
  const auto took = operation.ended - operation.begun;
  packed = std::clamp<std::int64_t>(packed, 0, took);
  unpacked = std::clamp<std::int64_t>(unpacked, 0, took - packed);
  operation.packing_ns = packed + unpacked;
  operation.begun += packed;
  operation.ended -= unpacked;
}

void EntryMatcher::emit(Pending& pending) {
  if (clocks_ == Clocks::unknown) align(pending);
  const auto& what = pending.what;
  ObservedOperation operation{
      .name = pending.members.empty() ? std::string() : pending.members.front(),
      .members = std::move(pending.members),
      .kind = std::string(operation_name(what.operation)),
      .mover = what.mover == Mover::none ? std::string() : std::string(name(what.mover)),
      .path = std::string(path_name(what.reason)),
      .path_reason = std::string(text(what.reason)),
      .tensors = what.tensors,
      .bytes = what.bytes};
  add_phases(pending.parts, operation);
  if (operation.ended == 0) return;
  operation.ranks = what.set == 0 ? pending.job_size : static_cast<int>(members_[what.set].size());
  sink_->operation(operation);
}

void EntryMatcher::finish() {
  for (auto& [key, pending] : pending_) emit(pending);
  pending_.clear();
  report_unfinished();
}

EntryMatcher::Waits EntryMatcher::waits_at_the_end() const {
  Waits waits;
  for (const auto& [rank, state] : ranks_) {
    for (const auto& [tensor, since] : state.submitted) {
      if (since == 0) continue;
      const auto set = static_cast<std::uint16_t>(tensor >> 32U);
      const auto* slot = state.file->name_of(set, static_cast<std::uint32_t>(tensor));
      const bool joined = slot != nullptr && operation_name(slot->operation) == "JOIN";
      if (joined && state.last_submitted > since) continue;  // The join ended without an entry.
      if (slot == nullptr || joined) {
        waits.unclear[set].insert(rank);
      } else {
        waits.since[{set, std::string(slot->name())}][rank] = since;
      }
    }
  }
  return waits;
}

/// Judges a wait only up to the time that the records of all ranks cover: ranks may have been saved
/// at different times, and after a loss no rank waits any more.
std::optional<UnfinishedOperation> EntryMatcher::judge_wait(
    const WaitKey& key, const std::map<int, std::int64_t>& since,
    const std::set<int>& unclear) const {
  UnfinishedOperation what{.name = key.second, .when = {}, .waiting = {}, .missing = {}};
  what.when.to = lost_.value_or(std::numeric_limits<std::int64_t>::max());
  what.when.from = what.when.to;
  const auto members = members_.find(key.first);
  const auto is_member = [&](int rank) {
    return key.first == 0 || (members != members_.end() && members->second.contains(rank));
  };
  for (const auto& [rank, state] : ranks_) {
    if (!is_member(rank)) continue;
    const auto taken = state.file->taken_ns();
    if (taken == 0) return std::nullopt;
    what.when.to = std::min(what.when.to, taken + state.offset);
  }
  for (const auto& [rank, at] : since) {
    if (at >= what.when.to) continue;
    what.waiting.push_back(rank);
    what.when.from = std::min(what.when.from, at);
  }
  for (const auto& [rank, state] : ranks_) {
    if (!is_member(rank) || since.contains(rank) || unclear.contains(rank)) continue;
    if (state.first <= what.when.from) what.missing.push_back(rank);
  }
  if (what.waiting.empty() || what.missing.empty()) return std::nullopt;
  return what;
}

void EntryMatcher::report_unfinished() {
  auto waits = waits_at_the_end();
  std::map<std::vector<int>, UnfinishedOperation> first;  // By the missing ranks.
  for (const auto& [key, since] : waits.since) {
    auto what = judge_wait(key, since, waits.unclear[key.first]);
    if (!what) continue;
    const auto found = first.find(what->missing);
    if (found == first.end()) {
      auto missing = what->missing;
      first.emplace(std::move(missing), std::move(*what));
    } else if (what->when.from < found->second.when.from) {
      found->second = std::move(*what);
    }
  }
  for (const auto& [missing, what] : first) sink_->unfinished(what);
}

}  // namespace horo::timeline
