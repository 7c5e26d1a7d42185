// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/profiler_events.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "timeline/input/event_values.hpp"

namespace horo::timeline {

namespace {

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

/// The bytes of a collective, from the profiler's count of elements and element type; 0: unknown.
std::uint64_t profiled_bytes(const ChromeEvent& event) {
  const auto elements = event.argument("In msg nelems");
  if (!is_number(elements)) return 0;
  std::uint64_t count = 0;
  std::from_chars(elements.data(), elements.data() + elements.size(), count);
  const auto dtype = event.argument("dtype");
  const bool half =
      dtype.find("alf") != std::string_view::npos || dtype.find("16") != std::string_view::npos;
  return std::min(count, kMostElements) * (half ? 2 : 4);
}

/// The kind of a collective, from the name of its kernel or call.
std::string_view profiled_kind(std::string_view name) {
  std::string_view found = "ALLREDUCE";
  for (const auto& [word, kind] : {std::pair{"llGather", "ALLGATHER"},
                                   {"llgather", "ALLGATHER"},
                                   {"all_gather", "ALLGATHER"},
                                   {"roadcast", "BROADCAST"},
                                   {"educeScatter", "REDUCESCATTER"},
                                   {"reduce_scatter", "REDUCESCATTER"},
                                   {"SendRecv", "ALLTOALL"}}) {
    if (name.find(word) != std::string_view::npos) found = kind;
  }
  return found;
}

ObservedOperation profiled_operation(const ChromeEvent& event, Interval when) {
  int ranks = 0;
  const auto size = event.argument("Group size");
  std::from_chars(size.data(), size.data() + size.size(), ranks);
  return {.name = std::string(event.name),
          .kind = std::string(profiled_kind(event.name)),
          .mover = event.name.find("nccl") != std::string_view::npos ? "NCCL" : "",
          .bytes = profiled_bytes(event),
          .ranks = ranks,
          .submitted = when.from,
          .agreed = when.from,
          .begun = when.from,
          .ended = when.to};
}

}  // namespace

void ProfilerEvents::take(const ChromeEvent& event, OperationSink& sink) {
  const int rank = std::max(event.rank, 0);
  if (rank != std::exchange(rank_, rank)) sink.saw_rank(rank, "");
  const auto from = to_ns(event.ts_us);
  const Interval when{from, from + std::max<std::int64_t>(to_ns(event.duration_us), 0)};
  if (event.name.starts_with("ProfilerStep#") && event.category == "user_annotation")
    return sink.stepped(when);
  const bool kernel = event.category == "kernel" || event.category == "Kernel";
  const bool cpu = event.category == "cpu_op" || event.category == "Operator";
  if (!kernel && !cpu && event.category != "gpu_memcpy" && event.category != "gpu_memset") return;
  if (!communicates(event.name)) {
    if (kernel) sink.computed(rank, when);
    return;
  }
  // Where there is a kernel, the call on the CPU is not the transfer.
  if (!kernel && event.argument("Collective name").empty() && !event.name.starts_with("gloo"))
    return;
  sink.communicated(rank, when);
  sink.operation(profiled_operation(event, when));
}

}  // namespace horo::timeline
