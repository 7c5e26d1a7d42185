// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/chrome_trace.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace horo::apps {

using timeline::ChromeEvent;

namespace {

constexpr std::string_view kNegotiate = "NEGOTIATE_";
constexpr std::int64_t kJump = 1'000'000'000;  ///< Backwards by so much: the clock was set.
constexpr std::size_t kMostBuckets = 4096;

/// Up to some 60 years, so that differences are numbers too; the trace may say anything.
std::int64_t to_ns(double us) {
  constexpr double kMost = 2e18;
  return us == us ? static_cast<std::int64_t>(std::clamp(us * 1000, -kMost, kMost)) : 0;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
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
    if (error == std::errc{}) {
      product *= extent;
      at = static_cast<std::size_t>(end - shape.data());
    } else {
      ++at;
    }
  }
  return product;
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
  if (now + kJump < newest_) ++backwards_;
  newest_ = std::max(newest_, now);
}

void ChromeTrace::take(const ChromeEvent& event) {
  const auto now = to_ns(event.ts_us);
  if (event.phase == 'M') {
    if (event.name == "process_name") names_[event.pid] = event.argument("name");
    return;
  }
  const bool begins = event.phase == 'B';
  if (event.phase != '\0' && !std::exchange(started_, true)) sink_->starts(now);
  if (!begins && event.phase != 'E' && event.phase != 'X') return;
  if (event.phase == 'X' && !event.category.empty()) return profiled(event);
  check_clock(now);
  auto& row = row_of(event);
  if (event.phase == 'X') return tick(row, event, now);
  if (begins) return begin(row, event.name, now);
  end(row, event, now);
}

ChromeTrace::Row& ChromeTrace::row_of(const ChromeEvent& event) {
  auto& row = rows_[event.tid.empty() ? event.pid : event.pid + '/' + event.tid];
  if (row.name.empty()) {
    row.number = rows_.size();
    const auto known = names_.find(event.pid);
    row.name = known == names_.end() || known->second.empty() ? "row " + event.pid : known->second;
  }
  return row;
}

void ChromeTrace::begin(Row& row, const std::string& name, std::int64_t now) {
  const bool negotiation = name.starts_with(kNegotiate);
  if (negotiation) {
    row.open.clear();  // What was lost of the last one does not count here.
    row.negotiated_from = now;
    row.negotiated_to = 0;
    row.arrivals.clear();
    if (const auto step = steps_.submitted(row.number, now)) sink_->stepped(*step);
  }
  row.open.push_back({name, now});
  const bool operation = !negotiation && row.open.size() == 1;
  if (operation) {
    if (!joining_) ++bucket_;
    row.bucket = bucket_;
    row.moved_from = row.moved_to = row.packing_ns = 0;
    row.mover.clear();
    auto& bucket = buckets_[bucket_];
    if (bucket.members++ == 0) bucket.operation = {.name = row.name, .kind = name};
    bucket.operation.tensors = bucket.members;
    if (sink_->wants_members()) bucket.operation.members.push_back(row.name);
    if (buckets_.size() > kMostBuckets) buckets_.erase(buckets_.begin());
  }
  joining_ = operation;
}

void ChromeTrace::tick(Row& row, const ChromeEvent& event, std::int64_t now) {
  if (!is_number(event.name) || row.negotiated_from == 0 || row.negotiated_to != 0) return;
  int rank = 0;
  std::from_chars(event.name.data(), event.name.data() + event.name.size(), rank);
  if (rank < 0 || rank > 1'000'000) return;
  ranks_ = std::max(ranks_, rank + 1);
  row.arrivals.push_back({rank, now});
}

void ChromeTrace::end(Row& row, const ChromeEvent& event, std::int64_t now) {
  joining_ = false;
  if (row.open.empty()) return;  // Barriers end without a beginning.
  const auto activity = std::move(row.open.back());
  row.open.pop_back();
  if (activity.name.starts_with(kNegotiate)) {
    row.negotiated_to = now;
    return;
  }
  if (row.open.empty()) return end_operation(row, event, now);
  if (activity.name.starts_with("MEMCPY_")) row.packing_ns += now - activity.from;
  if (const auto mover = mover_of(activity.name); !mover.empty()) {
    row.mover = mover;
    if (row.moved_from == 0) row.moved_from = activity.from;
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
    if (ns != 0 && (to == 0 || ns < to)) to = ns;
  };
  earlier(operation.submitted, row.negotiated_from);
  operation.agreed = std::max(operation.agreed, row.negotiated_to);
  earlier(operation.begun, row.moved_from);
  operation.ended = std::max(operation.ended, row.moved_to != 0 ? row.moved_to : now);
  for (const auto& arrival : row.arrivals)
    bucket.arrivals[arrival.rank] = std::max(bucket.arrivals[arrival.rank], arrival.ns);
  row.negotiated_from = row.negotiated_to = 0;
  row.arrivals.clear();
  if (++bucket.done < bucket.members) return;
  if (operation.begun == 0) operation.begun = operation.agreed != 0 ? operation.agreed : now;
  if (operation.agreed == 0) operation.agreed = operation.begun;
  if (operation.submitted == 0) operation.submitted = operation.agreed;
  for (const auto& [rank, ns] : bucket.arrivals) operation.arrivals.push_back({rank, ns});
  operation.ranks = ranks_;
  sink_->communicated(0, {operation.begun, operation.ended});
  sink_->operation(operation);
  buckets_.erase(found);
}

void ChromeTrace::profiled(const ChromeEvent& event) {
  has_profile_ = true;
  const auto from = to_ns(event.ts_us);
  const Interval when{from, from + to_ns(event.duration_us)};
  if (event.name.starts_with("ProfilerStep#") && event.category == "user_annotation")
    return sink_->stepped(when);
  const bool kernel = event.category == "kernel" || event.category == "Kernel";
  const bool cpu = event.category == "cpu_op" || event.category == "Operator";
  if (!kernel && !cpu && event.category != "gpu_memcpy" && event.category != "gpu_memset") return;
  if (!communicates(event.name)) {
    if (kernel) sink_->computed(profiled_rank_, when);
    return;
  }
  // The call on the processor is not the transfer, where there is a kernel.
  if (!kernel && event.argument("Collective name").empty() && !event.name.starts_with("gloo"))
    return;
  sink_->communicated(profiled_rank_, when);
  std::uint64_t bytes = 0;
  if (const auto elements = event.argument("In msg nelems"); is_number(elements)) {
    std::from_chars(elements.data(), elements.data() + elements.size(), bytes);
    bytes *= event.argument("dtype").find("alf") != std::string_view::npos ||
                     event.argument("dtype").find("16") != std::string_view::npos
                 ? 2
                 : 4;
  }
  int ranks = 0;
  const auto size = event.argument("Group size");
  std::from_chars(size.data(), size.data() + size.size(), ranks);
  Operation operation{.name = event.name,
                      .kind = "ALLREDUCE",
                      .mover = event.name.find("nccl") != std::string::npos ? "NCCL" : "",
                      .bytes = bytes,
                      .ranks = ranks};
  for (const auto& [word, kind] : {std::pair{"llGather", "ALLGATHER"},
                                   {"llgather", "ALLGATHER"},
                                   {"all_gather", "ALLGATHER"},
                                   {"roadcast", "BROADCAST"},
                                   {"educeScatter", "REDUCESCATTER"},
                                   {"reduce_scatter", "REDUCESCATTER"},
                                   {"SendRecv", "ALLTOALL"}}) {
    if (event.name.find(word) != std::string::npos) operation.kind = kind;
  }
  operation.submitted = operation.agreed = operation.begun = when.from;
  operation.ended = when.to;
  sink_->operation(operation);
}

void ChromeTrace::finish(int rank) {
  if (has_profile_) sink_->saw_rank(std::max(rank, 0), "");
  if (backwards_ != 0) {
    sink_->warn(
        fmt::format("the clock jumped back {} times; figures across a jump are wrong", backwards_));
  }
}

}  // namespace horo::apps
