// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/chrome_operations.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "timeline/chrome/chrome_rows.hpp"
#include "timeline/input/event_values.hpp"

namespace horo::timeline {

namespace {

constexpr std::string_view kNegotiate = "NEGOTIATE_";
constexpr std::int64_t kJump = 1'000'000'000;  ///< A larger step back means that the clock was set.
constexpr std::size_t kMostBuckets = 4096;
constexpr std::size_t kMostParts = 64;  ///< Most unfinished operations of one tensor.
constexpr std::size_t kMostNamesOfParts = 32'768;
constexpr std::uint8_t kNamesLast = 3;
constexpr std::size_t kMostOpen = 64;  ///< Most nested activities of a row.

/// Merges another rank's view of the same operation.
void join(ObservedOperation& operation, const ObservedOperation& other) {
  operation.arrivals.insert(operation.arrivals.end(), other.arrivals.begin(), other.arrivals.end());
  operation.submitted = std::min(operation.submitted, other.submitted);
  operation.agreed = std::max(operation.agreed, other.agreed);
  // In a rank's row the negotiation ends when the rank learns of the agreement, which is later.
  const auto by_time = [](const Arrival& a, const Arrival& b) { return a.ns < b.ns; };
  const auto& arrivals = operation.arrivals;
  if (arrivals.size() > 1) {
    const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end(), by_time);
    operation.submitted = first->ns;
    operation.agreed = last->ns;
  }
  operation.begun = std::max(std::min(operation.begun, other.begun), operation.agreed);
  operation.ended = std::max({operation.ended, other.ended, operation.begun});
  operation.packing_ns = std::max(operation.packing_ns, other.packing_ns);
  operation.device_ns = std::max(operation.device_ns, other.device_ns);
  operation.bytes = std::max(operation.bytes, other.bytes);
  operation.ranks = std::max(operation.ranks, other.ranks);
}

void take_later(std::int64_t& to, std::int64_t ns) {
  to = std::max(to, ns);
}

}  // namespace

void ChromeOperations::check_clock(std::int64_t now) {
  const bool jumped = now + kJump < newest_;
  if (jumped) ++backwards_;
  newest_ = jumped ? now : std::max(newest_, now);
}

std::optional<std::int64_t> ChromeOperations::time_of(const ChromeEvent& event) {
  if (event.phase == '\0' || event.phase == 'M') return std::nullopt;
  return to_ns(event.ts_us);
}

void ChromeOperations::take(const ChromeEvent& event) {
  if (event.phase == 'M') {
    if (event.name == "process_name")
      names_[std::string(event.pid)] = {.text = std::string(event.argument("name"))};
    return;
  }
  const auto time = time_of(event);
  if (!time) return;
  const auto now = *time;
  if (now < earliest_) sink_->starts(earliest_ = now);
  if (event.category == kDeviceCategory) return worked(event, now);
  if (event.phase != 'B' && event.phase != 'E' && event.phase != 'X') return;
  if (event.phase == 'X' && !event.category.empty()) return profiler_.take(event, *sink_);
  check_clock(now);
  auto& row = row_of(event);
  if (now < row.newest && now + kJump >= row.newest) ++disordered_;
  row.newest = now;
  if (event.phase == 'X') return tick(row, event, now);
  if (event.phase == 'B') return begin(row, event.name, now);
  end(row, event, now);
}

ChromeOperations::Row& ChromeOperations::row_of(const ChromeEvent& event) {
  const std::string_view known(key_);
  if (recent_ != nullptr && known.size() == event.pid.size() + 1 + event.tid.size() &&
      known.starts_with(event.pid) && known.ends_with(event.tid))
    return *recent_;
  key_.assign(event.pid).append(1, '/').append(event.tid);
  if (rows_.size() >= most_rows_) forget_idle_rows();
  auto& row = rows_[key_];
  recent_ = &row;
  if (row.name.empty()) name(row, event);
  return row;
}

void ChromeOperations::name(Row& row, const ChromeEvent& event) {
  // A row that was forgotten and comes back gets the same number.
  row.number = std::hash<std::string>()(key_);
  row.rank = row_rank(event.tid);
  if (row.rank >= 0) shown_.insert(row.rank);
  const std::string pid(event.pid);
  const auto found = names_.find(pid);
  if (found == names_.end() || found->second.text.empty()) {
    row.name = "row " + pid;
  } else {
    row.name = found->second.text;
    found->second.unused_for = 0;
  }
}

/// Forgets idle rows; the row of a tensor is made again when needed. Names stay for longer, because
/// the trace gives each name only once.
void ChromeOperations::forget_idle_rows() {
  recent_ = nullptr;
  std::erase_if(rows_, [this](const auto& entry) {
    const auto& row = entry.second;
    // A barrier has a negotiation and nothing else.
    const bool negotiates = row.negotiated_from != kNever &&
                            (row.negotiated_to == kNever || row.negotiated_to + kJump > newest_);
    return row.open.empty() && !negotiates;
  });
  std::erase_if(names_, [](const auto& entry) { return entry.second.unused_for >= kNamesLast; });
  for (auto& [pid, name] : names_) ++name.unused_for;
  most_rows_ = std::max(most_rows_, 2 * rows_.size());
}

ChromeOperations::Activity ChromeOperations::activity_of(std::string_view name, std::int64_t now) {
  using Kind = Activity::Kind;
  if (name.starts_with(kNegotiate)) return {.kind = Kind::negotiates, .from = now};
  if (name.starts_with("MEMCPY_")) return {.kind = Kind::copies, .from = now};
  const auto mover = activity_mover(name);
  return {.kind = mover.empty() ? Kind::other : Kind::moves, .mover = mover, .from = now};
}

/// Finds the fused operation that a row's tensor belongs to. Horovod begins the members of an
/// operation one after the other. Horo begins all at one moment, each after the end of its
/// negotiation and before its time in the queue.
ChromeOperations::Bucket& ChromeOperations::bucket_of(Row& row, std::string_view kind,
                                                      std::int64_t now) {
  auto& joining = joining_[row.rank];
  const auto known = buckets_.find(joining.bucket);
  const bool joins = known != buckets_.end() && known->second.operation.kind == kind &&
                     (!joining.at_once || joining.begun == now);
  if (!joins) joining = {.bucket = ++bucket_};
  joining.begun = now;
  joining.at_once = false;
  row.bucket = joining.bucket;
  return buckets_[row.bucket];
}

void ChromeOperations::begin(Row& row, std::string_view name, std::int64_t now) {
  const auto activity = activity_of(name, now);
  const bool negotiation = activity.kind == Activity::Kind::negotiates;
  if (negotiation) {
    row.open.clear();  // Drops activities whose ends were lost.
    row.negotiated_from = now;
    row.negotiated_to = kNever;
    row.arrivals.clear();
    if (const auto step = steps_.submitted(row.number, now)) sink_->stepped(*step);
  }
  if (row.open.size() >= kMostOpen) row.open.clear();  // Their ends are missing.
  row.open.push_back(activity);
  const bool operation = !negotiation && row.open.size() == 1;
  if (operation) {
    auto& bucket = bucket_of(row, name, now);
    row.moved_from = row.moved_to = kNever;
    row.packing_ns = 0;
    row.mover = {};
    row.path.clear();
    row.path_reason.clear();
    if (bucket.members++ == 0) {
      bucket.operation = {.name = row.name,
                          .kind = std::string(name),
                          .submitted = kNever,
                          .agreed = kNever,
                          .begun = kNever,
                          .ended = kNever};
    }
    bucket.operation.tensors = bucket.members;
    if (sink_->wants_members()) bucket.operation.members.push_back(row.name);
    if (buckets_.size() > kMostBuckets) buckets_.erase(buckets_.begin());
  } else {
    joining_[row.rank].at_once = true;
  }
}

/// An event on the track of a device: a phase of an operation, or why there are none.
void ChromeOperations::worked(const ChromeEvent& event, std::int64_t now) {
  int rank = -1;
  const auto told = event.argument("rank");
  std::from_chars(told.data(), told.data() + told.size(), rank);
  if (rank > kMostRanks) return;
  const int shown = std::max(rank, 0);
  if (event.name == kNoDeviceTimesEvent)
    return sink_->no_device_times(shown, event.argument("reason"), now);
  if (event.phase != 'X') return;
  const auto lasted = std::max<std::int64_t>(to_ns(event.duration_us), 0);
  sink_->worked({.rank = shown, .activity = std::string(event.name), .when = {now, now + lasted}});
  if (device_ns_.size() > kMostNamesOfParts) device_ns_.clear();  // Their operations never ended.
  device_ns_[{rank, std::string(event.argument("tensor"))}] += lasted;
}

void ChromeOperations::tick(Row& row, const ChromeEvent& event, std::int64_t now) {
  if (!is_number(event.name) || row.negotiated_from == kNever || row.negotiated_to != kNever)
    return;
  int rank = 0;
  std::from_chars(event.name.data(), event.name.data() + event.name.size(), rank);
  if (rank < 0 || rank > kMostRanks || row.arrivals.size() > kMostRanks) return;
  ranks_ = std::max(ranks_, rank + 1);
  row.arrivals.push_back({rank, now});
}

void ChromeOperations::end(Row& row, const ChromeEvent& event, std::int64_t now) {
  if (row.open.empty()) return;  // A barrier has an end but no beginning.
  const auto activity = row.open.back();
  row.open.pop_back();
  if (activity.kind == Activity::Kind::negotiates) {
    row.negotiated_to = now;
    joining_[row.rank].at_once = true;
    return;
  }
  joining_.erase(row.rank);
  if (row.open.empty()) return end_operation(row, event, now);
  if (activity.kind == Activity::Kind::copies) row.packing_ns += now - activity.from;
  if (activity.kind == Activity::Kind::moves) {
    row.mover = activity.mover;
    row.path = event.argument("path");
    row.path_reason = event.argument("reason");
    if (row.moved_from == kNever) row.moved_from = activity.from;
    row.moved_to = now;
  }
}

void ChromeOperations::end_operation(Row& row, const ChromeEvent& event, std::int64_t now) {
  const auto found = buckets_.find(row.bucket);
  if (found == buckets_.end()) return;
  auto& bucket = found->second;
  auto& operation = bucket.operation;
  operation.bytes += dtype_bytes(event.argument("dtype")) * shape_elements(event.argument("shape"));
  if (!row.mover.empty()) operation.mover = row.mover;
  if (!row.path.empty()) {
    operation.path = row.path;
    operation.path_reason = row.path_reason;
  }
  operation.packing_ns = std::max(operation.packing_ns, row.packing_ns);
  const auto earlier = [](std::int64_t& to, std::int64_t ns) {
    if (ns != kNever && (to == kNever || ns < to)) to = ns;
  };
  earlier(operation.submitted, row.negotiated_from);
  take_later(operation.agreed, row.negotiated_to);
  earlier(operation.begun, row.moved_from);
  take_later(operation.ended, row.moved_to != kNever ? row.moved_to : now);
  for (const auto& arrival : row.arrivals)
    take_later(bucket.arrivals.try_emplace(arrival.rank, kNever).first->second, arrival.ns);
  row.negotiated_from = row.negotiated_to = kNever;
  row.arrivals.clear();
  if (++bucket.done < bucket.members) return;
  if (operation.begun == kNever)
    operation.begun = operation.agreed != kNever ? operation.agreed : now;
  if (operation.agreed == kNever) operation.agreed = operation.begun;
  if (operation.submitted == kNever) operation.submitted = operation.agreed;
  // Events may be out of order; the phases of an operation must not be.
  take_later(operation.agreed, operation.submitted);
  take_later(operation.begun, operation.submitted);
  take_later(operation.ended, std::max(operation.begun, operation.agreed));
  for (const auto& [rank, ns] : bucket.arrivals) operation.arrivals.push_back({rank, ns});
  operation.ranks = ranks_;
  if (const auto device = device_ns_.extract({row.rank, operation.name}); !device.empty())
    operation.device_ns = device.mapped();
  emit(std::move(operation), row.rank);
  buckets_.erase(found);
}

/// Merges the views of several ranks. They overlap, because no rank ends an operation before the
/// last rank has arrived, and a rank's next operation on the same tensors begins after that.
void ChromeOperations::emit(ObservedOperation operation, int rank) {
  sink_->communicated(std::max(rank, 0), {operation.begun, operation.ended});
  if (rank < 0) return sink_->operation(operation);
  const auto first = parts_.try_emplace(operation.name).first;
  auto& parts = first->second;
  auto found = std::find_if(parts.begin(), parts.end(), [&](const Part& part) {
    const auto& known = part.operation;
    return std::find(part.ranks.begin(), part.ranks.end(), rank) == part.ranks.end() &&
           known.submitted <= operation.ended && operation.submitted <= known.ended;
  });
  if (found == parts.end()) {
    parts.push_back({std::move(operation), {rank}});
    found = parts.end() - 1;
  } else {
    join(found->operation, operation);
    found->ranks.push_back(rank);
  }
  // Ranks that are missing in older operations will not show them any more.
  const auto done = found->ranks.size() >= shown_.size() ? found - parts.begin() + 1
                    : parts.size() > kMostParts          ? 1
                                                         : 0;
  for (auto i = done; i > 0; --i) {
    sink_->operation(parts.front().operation);
    parts.pop_front();
  }
  if (parts.empty()) parts_.erase(first);
  if (parts_.size() > kMostNamesOfParts) emit_parts();
}

/// Reports the operations of which some ranks are missing.
void ChromeOperations::emit_parts() {
  for (const auto& [name, parts] : parts_) {
    for (const auto& part : parts) sink_->operation(part.operation);
  }
  parts_.clear();
}

void ChromeOperations::finish() {
  emit_parts();
  const auto times = [](std::uint64_t count) {
    return count == 1 ? std::string("once") : fmt::format("{} times", count);
  };
  if (backwards_ != 0) {
    sink_->warn(fmt::format("the clock jumped back {}; figures across a jump are wrong",
                            times(backwards_)));
  }
  if (disordered_ != 0) {
    sink_->warn(
        fmt::format("an event is earlier than the one before it in its row, {}; figures of those "
                    "operations are wrong",
                    times(disordered_)));
  }
}

}  // namespace horo::timeline
