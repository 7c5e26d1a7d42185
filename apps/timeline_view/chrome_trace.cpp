// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/chrome_trace.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace horo::apps {

using timeline::ChromeEvent;

namespace {

constexpr std::string_view kNegotiate = "NEGOTIATE_";
constexpr std::int64_t kJump = 1'000'000'000;  ///< Backwards by so much: the clock was set.
constexpr std::size_t kMostBuckets = 4096;
constexpr std::size_t kMostParts = 64;  ///< Of one tensor.
constexpr std::size_t kMostNamesOfParts = 32'768;
constexpr std::uint8_t kNamesLast = 3;
constexpr std::size_t kMostOpen = 64;  ///< One inside the other, of a row.
constexpr int kMostRanks = 1'000'000;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40U;  ///< So that sums are numbers too.

/// Up to some 60 years, so that differences are numbers too; the trace may say anything.
std::int64_t to_ns(double us) {
  constexpr double kMost = 2e18;
  return us == us ? static_cast<std::int64_t>(std::clamp(us * 1000, -kMost, kMost)) : 0;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Of a row that is one rank's; -1: of all.
int rank_of(std::string_view tid) {
  int rank = -1;
  const auto parsed = std::from_chars(tid.data(), tid.data() + tid.size(), rank);
  return parsed.ec == std::errc{} && is_number(tid) && rank < kMostRanks ? rank : -1;
}

/// "MPI_ALLREDUCE": what moves the bytes; empty: another activity.
std::string_view mover_of(std::string_view activity) {
  for (const std::string_view mover : {"SHM", "GLOO", "MPI", "NCCL", "CCL", "OTHER"}) {
    if (activity.starts_with(mover) && activity.substr(mover.size()).starts_with('_')) return mover;
  }
  return {};
}

std::uint64_t size_of(std::string_view dtype) {
  for (const auto& [bits, bytes] : {std::pair{"64", 8}, {"32", 4}, {"16", 2}}) {
    if (dtype.ends_with(bits)) return static_cast<std::uint64_t>(bytes);
  }
  return dtype.empty() ? 0 : 1;
}

/// "[2, 3]" is 6; "[]" is 1.
std::uint64_t elements_of(std::string_view shape) {
  std::uint64_t product = 1;
  for (std::size_t at = 0; at < shape.size();) {
    std::uint64_t extent = 0;
    const auto [end, error] =
        std::from_chars(shape.data() + at, shape.data() + shape.size(), extent);
    if (error == std::errc::invalid_argument) {
      ++at;
      continue;
    }
    if (error != std::errc{}) extent = kMostElements;
    product = extent == 0 ? 0 : product > kMostElements / extent ? kMostElements : product * extent;
    at = static_cast<std::size_t>(end - shape.data());
  }
  return product;
}

/// What another rank shows of the same operation.
void join(Operation& operation, const Operation& other) {
  operation.arrivals.insert(operation.arrivals.end(), other.arrivals.begin(), other.arrivals.end());
  operation.submitted = std::min(operation.submitted, other.submitted);
  operation.agreed = std::max(operation.agreed, other.agreed);
  // A rank's negotiation ends when it hears of the agreement, which is later.
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
  operation.bytes = std::max(operation.bytes, other.bytes);
  operation.ranks = std::max(operation.ranks, other.ranks);
}

void take_later(std::int64_t& to, std::int64_t ns) {
  to = std::max(to, ns);
}

bool communicates(std::string_view name) {
  constexpr std::array<std::string_view, 10> kWords{
      "nccl",      "allreduce",      "all_reduce", "allgather",  "all_gather",
      "broadcast", "reduce_scatter", "alltoall",   "all_to_all", "gloo"};
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

void ChromeTrace::check_clock(std::int64_t now) {
  const bool jumped = now + kJump < newest_;
  if (jumped) ++backwards_;
  newest_ = jumped ? now : std::max(newest_, now);
}

std::optional<std::int64_t> ChromeTrace::time_of(const ChromeEvent& event) {
  if (event.phase == '\0' || event.phase == 'M') return std::nullopt;
  return to_ns(event.ts_us);
}

void ChromeTrace::take(const ChromeEvent& event) {
  if (event.phase == 'M') {
    if (event.name == "process_name")
      names_[std::string(event.pid)] = {.text = std::string(event.argument("name"))};
    return;
  }
  const auto time = time_of(event);
  if (!time) return;
  const auto now = *time;
  if (now < earliest_) sink_->starts(earliest_ = now);
  if (event.phase != 'B' && event.phase != 'E' && event.phase != 'X') return;
  if (event.phase == 'X' && !event.category.empty()) return profiled(event);
  check_clock(now);
  auto& row = row_of(event);
  if (now < row.newest && now + kJump >= row.newest) ++disordered_;
  row.newest = now;
  if (event.phase == 'X') return tick(row, event, now);
  if (event.phase == 'B') return begin(row, event.name, now);
  end(row, event, now);
}

ChromeTrace::Row& ChromeTrace::row_of(const ChromeEvent& event) {
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

void ChromeTrace::name(Row& row, const ChromeEvent& event) {
  // The same for a row that was forgotten and comes back.
  row.number = std::hash<std::string>()(key_);
  row.rank = rank_of(event.tid);
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

/// They come back if they are of tensors. Names are said but once, so that they stay for longer.
void ChromeTrace::forget_idle_rows() {
  recent_ = nullptr;
  std::erase_if(rows_, [this](const auto& entry) {
    const auto& row = entry.second;
    // Barriers do nothing but negotiate.
    const bool negotiates = row.negotiated_from != kNever &&
                            (row.negotiated_to == kNever || row.negotiated_to + kJump > newest_);
    return row.open.empty() && !negotiates;
  });
  std::erase_if(names_, [](const auto& entry) { return entry.second.unused_for >= kNamesLast; });
  for (auto& [pid, name] : names_) ++name.unused_for;
  most_rows_ = std::max(most_rows_, 2 * rows_.size());
}

ChromeTrace::Activity ChromeTrace::activity_of(std::string_view name, std::int64_t now) {
  using Kind = Activity::Kind;
  if (name.starts_with(kNegotiate)) return {.kind = Kind::negotiates, .from = now};
  if (name.starts_with("MEMCPY_")) return {.kind = Kind::copies, .from = now};
  const auto mover = mover_of(name);
  return {.kind = mover.empty() ? Kind::other : Kind::moves, .mover = mover, .from = now};
}

/// Horovod begins all members of an operation one after the other; horo does so at one moment, each
/// behind the end of its negotiation and in front of its time in the queue.
ChromeTrace::Bucket& ChromeTrace::bucket_of(Row& row, std::string_view kind, std::int64_t now) {
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

void ChromeTrace::begin(Row& row, std::string_view name, std::int64_t now) {
  const auto activity = activity_of(name, now);
  const bool negotiation = activity.kind == Activity::Kind::negotiates;
  if (negotiation) {
    row.open.clear();  // What was lost of the last one does not count here.
    row.negotiated_from = now;
    row.negotiated_to = kNever;
    row.arrivals.clear();
    if (const auto step = steps_.submitted(row.number, now)) sink_->stepped(*step);
  }
  if (row.open.size() >= kMostOpen) row.open.clear();  // Nobody ends them.
  row.open.push_back(activity);
  const bool operation = !negotiation && row.open.size() == 1;
  if (operation) {
    auto& bucket = bucket_of(row, name, now);
    row.moved_from = row.moved_to = kNever;
    row.packing_ns = 0;
    row.mover = {};
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

void ChromeTrace::tick(Row& row, const ChromeEvent& event, std::int64_t now) {
  if (!is_number(event.name) || row.negotiated_from == kNever || row.negotiated_to != kNever)
    return;
  int rank = 0;
  std::from_chars(event.name.data(), event.name.data() + event.name.size(), rank);
  if (rank < 0 || rank > kMostRanks || row.arrivals.size() > kMostRanks) return;
  ranks_ = std::max(ranks_, rank + 1);
  row.arrivals.push_back({rank, now});
}

void ChromeTrace::end(Row& row, const ChromeEvent& event, std::int64_t now) {
  if (row.open.empty()) return;  // Barriers end without a beginning.
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
    if (row.moved_from == kNever) row.moved_from = activity.from;
    row.moved_to = now;
  }
}

void ChromeTrace::end_operation(Row& row, const ChromeEvent& event, std::int64_t now) {
  const auto found = buckets_.find(row.bucket);
  if (found == buckets_.end()) return;
  auto& bucket = found->second;
  auto& operation = bucket.operation;
  operation.bytes += size_of(event.argument("dtype")) * elements_of(event.argument("shape"));
  if (!row.mover.empty()) operation.mover = row.mover;
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
  // Events that are out of order tell of no time that runs backwards.
  take_later(operation.agreed, operation.submitted);
  take_later(operation.begun, operation.submitted);
  take_later(operation.ended, std::max(operation.begun, operation.agreed));
  for (const auto& [rank, ns] : bucket.arrivals) operation.arrivals.push_back({rank, ns});
  operation.ranks = ranks_;
  give(std::move(operation), row.rank);
  buckets_.erase(found);
}

/// What the ranks show of one operation overlaps, as none ends before the last has come, and a
/// rank's next one of the same tensors begins after that.
void ChromeTrace::give(Operation operation, int rank) {
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
  // Who is missing in older ones shows them no more.
  const auto done = found->ranks.size() >= shown_.size() ? found - parts.begin() + 1
                    : parts.size() > kMostParts          ? 1
                                                         : 0;
  for (auto i = done; i > 0; --i) {
    sink_->operation(parts.front().operation);
    parts.pop_front();
  }
  if (parts.empty()) parts_.erase(first);
  if (parts_.size() > kMostNamesOfParts) give_parts();
}

/// Whoever is missing in them.
void ChromeTrace::give_parts() {
  for (const auto& [name, parts] : parts_) {
    for (const auto& part : parts) sink_->operation(part.operation);
  }
  parts_.clear();
}

void ChromeTrace::profiled(const ChromeEvent& event) {
  const int rank = std::max(event.rank, 0);
  if (rank != std::exchange(profiled_rank_, rank)) sink_->saw_rank(rank, "");
  const auto from = to_ns(event.ts_us);
  const Interval when{from, from + std::max<std::int64_t>(to_ns(event.duration_us), 0)};
  if (event.name.starts_with("ProfilerStep#") && event.category == "user_annotation")
    return sink_->stepped(when);
  const bool kernel = event.category == "kernel" || event.category == "Kernel";
  const bool cpu = event.category == "cpu_op" || event.category == "Operator";
  if (!kernel && !cpu && event.category != "gpu_memcpy" && event.category != "gpu_memset") return;
  if (!communicates(event.name)) {
    if (kernel) sink_->computed(rank, when);
    return;
  }
  // The call on the processor is not the transfer, where there is a kernel.
  if (!kernel && event.argument("Collective name").empty() && !event.name.starts_with("gloo"))
    return;
  sink_->communicated(rank, when);
  std::uint64_t bytes = 0;
  if (const auto elements = event.argument("In msg nelems"); is_number(elements)) {
    std::from_chars(elements.data(), elements.data() + elements.size(), bytes);
    bytes = std::min(bytes, kMostElements);
    bytes *= event.argument("dtype").find("alf") != std::string_view::npos ||
                     event.argument("dtype").find("16") != std::string_view::npos
                 ? 2
                 : 4;
  }
  int ranks = 0;
  const auto size = event.argument("Group size");
  std::from_chars(size.data(), size.data() + size.size(), ranks);
  Operation operation{.name = std::string(event.name),
                      .kind = "ALLREDUCE",
                      .mover = event.name.find("nccl") != std::string_view::npos ? "NCCL" : "",
                      .bytes = bytes,
                      .ranks = ranks};
  for (const auto& [word, kind] : {std::pair{"llGather", "ALLGATHER"},
                                   {"llgather", "ALLGATHER"},
                                   {"all_gather", "ALLGATHER"},
                                   {"roadcast", "BROADCAST"},
                                   {"educeScatter", "REDUCESCATTER"},
                                   {"reduce_scatter", "REDUCESCATTER"},
                                   {"SendRecv", "ALLTOALL"}}) {
    if (event.name.find(word) != std::string_view::npos) operation.kind = kind;
  }
  operation.submitted = operation.agreed = operation.begun = when.from;
  operation.ended = when.to;
  sink_->operation(operation);
}

void ChromeTrace::finish() {
  give_parts();
  const auto times = [](std::uint64_t count) {
    return count == 1 ? std::string("once") : fmt::format("{} times", count);
  };
  if (backwards_ != 0) {
    sink_->warn(fmt::format("the clock jumped back {}; figures across a jump are wrong",
                            times(backwards_)));
  }
  if (disordered_ != 0) {
    sink_->warn(
        fmt::format("a row's event is before the one that it follows, {}; figures of those "
                    "operations are wrong",
                    times(disordered_)));
  }
}

}  // namespace horo::apps
