// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome/chrome_rows.hpp"

#include <algorithm>

#include "base/json.hpp"

namespace horo::timeline {

namespace {

constexpr std::uint8_t kBarrier = 3;
constexpr std::uint8_t kJoin = 6;

double us_of(std::int64_t ns) {
  return static_cast<double>(ns) / 1000;
}

}  // namespace

std::string device_event(const ShownDevicePhase& phase, std::string_view row_text) {
  const auto& what = phase.what;
  auto text = fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": {}, "ts": {:.3f}, "dur": {:.3f}{}, "tid": {}, "args": {{"error_us": {:.3f})",
      kDeviceCategory, json_quote(activity_name(what.phase, phase.operation)),
      us_of(std::max<std::int64_t>(phase.from_ns - static_cast<std::int64_t>(what.before_ns), 0)),
      us_of(static_cast<std::int64_t>(what.lasted_ns)), row_text, what.stream,
      us_of(static_cast<std::int64_t>(what.error_ns)));
  if (phase.rank >= 0) text += fmt::format(R"(, "rank": {})", phase.rank);
  if (!phase.tensor.empty()) {
    text += fmt::format(R"(, "operation": "{}", "tensor": {}, "tensors": {})", phase.operation,
                        json_quote(phase.tensor), phase.tensors);
  }
  return text + "}}";
}

std::string no_device_times_event(std::string_view reason, const ShownDevicePhase& phase,
                                  std::string_view row_text) {
  auto text = fmt::format(
      R"({{"ph": "i", "cat": "{}", "name": "{}", "s": "p", "ts": {}{}, "tid": 0, "args": {{"reason": {})",
      kDeviceCategory, kNoDeviceTimesEvent, std::max<std::int64_t>(phase.from_ns / 1000, 0),
      row_text, json_quote(reason));
  if (phase.rank >= 0) text += fmt::format(R"(, "rank": {})", phase.rank);
  return text + "}}";
}

std::string row_names(int row, std::string_view title) {
  return fmt::format(
      R"({{"name": "process_name", "ph": "M", "pid": {0}, "args": {{"name": {1}}}}},
{{"name": "process_sort_index", "ph": "M", "pid": {0}, "args": {{"sort_index": {0}}}}})",
      row, json_quote(title));
}

void describe(ChromeRow& tensor, const std::optional<NameSlot>& slot, const DeclaredFacts* was) {
  const auto operation = slot ? slot->operation : std::uint8_t{0};
  tensor.only_negotiates = slot && (operation == kBarrier || operation == kJoin);
  tensor.negotiates = begins(fmt::format("NEGOTIATE_{}", operation_name(operation)));
  tensor.result = kEnds;
  if (slot && (was == nullptr || was->bytes == slot->bytes)) {
    tensor.result += fmt::format(R"(, "args": {{"dtype": "{}", "shape": {}}})",
                                 dtype_name(slot->dtype), json_quote(slot->shape()));
  }
}

void add_copies(std::deque<ShownEntry>& entries, const Copies& copies, double ns_per_tick) {
  const auto us = [ns_per_tick](std::uint64_t ticks) {
    return static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick / 1000);
  };
  for (auto& entry : entries) {
    if (entry.number != copies.entry || entry.set != copies.set) continue;
    entry.in_us = us(copies.in);
    entry.out_us = us(copies.out);
  }
}

}  // namespace horo::timeline
