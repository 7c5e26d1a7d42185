// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome_writer.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/json.hpp"

namespace horo::timeline {

namespace {

constexpr std::uint8_t kBarrier = 3;
constexpr std::uint8_t kJoin = 6;
/// Entries of one rank that may be open at a time: more means that their ends were overwritten.
constexpr std::size_t kMostOpen = 1024;

std::string begins(std::string_view name) {
  return fmt::format(R"("ph": "B", "name": "{}")", name);
}

constexpr const char* kEnds = R"("ph": "E")";

}  // namespace

ChromeWriter::ChromeWriter(const ChromeOptions& options, LookUp look_up)
    : options_(options), look_up_(std::move(look_up)) {}

std::string ChromeWriter::head() {
  tensors_.clear();
  rows_ = 0;
  return fmt::format(
      R"({{"name": "process_name", "ph": "M", "pid": 0, "args": {{"start_time_since_epoch_in_micros": {}}}}},
{{"name": "process_sort_index", "ph": "M", "pid": 0, "args": {{"sort_index": 0}}}})",
      options_.start_wall_ns / 1000);
}

std::string ChromeWriter::events() {
  return std::exchange(text_, {});
}

void ChromeWriter::put_at(RankState& state, int rank, int row, const std::string& fields,
                          std::int64_t us) {
  // Clocks are read on several cores: no event of a row is before the one in front of it.
  auto& last = state.last_us[row];
  last = std::max(last, us);
  if (!text_.empty()) text_ += ",\n";
  text_ += fmt::format(R"({{{}, "ts": {})", fields, last);
  if (row > 0) text_ += fmt::format(R"(, "pid": {})", row);
  if (options_.show_ranks) text_ += fmt::format(R"(, "tid": {})", rank);
  text_ += '}';
}

ChromeWriter::Tensor& ChromeWriter::tensor(int rank, std::uint16_t set, std::uint32_t id,
                                           std::uint64_t ticks) {
  const auto known = tensors_.find({set, id});
  if (known != tensors_.end() && known->second.row > 0) return known->second;
  auto& made = tensors_[{set, id}];
  const auto slot = look_up_(rank, set, id);
  made.row = ++rows_;
  made.operation = operation_name(slot ? slot->operation : 0);
  made.only_negotiates = slot && (slot->operation == kBarrier || slot->operation == kJoin);
  made.name = slot ? slot->name() : "";
  auto name = slot ? made.name : fmt::format("tensor {}", id);
  if (slot && slot->since > ticks && ticks != 0)
    name = fmt::format("tensor {} (before it was {})", id, name);
  if (set != 0) name = fmt::format("{} (process set {})", name, set);
  if (slot) {
    made.result = fmt::format(R"("ph": "E", "args": {{"dtype": "{}", "shape": {}}})",
                              dtype_name(slot->dtype), json_quote(slot->shape()));
  } else {
    made.result = kEnds;
  }
  if (!text_.empty()) text_ += ",\n";
  text_ += fmt::format(
      R"({{"name": "process_name", "ph": "M", "pid": {0}, "args": {{"name": {1}}}}},
{{"name": "process_sort_index", "ph": "M", "pid": {0}, "args": {{"sort_index": {0}}}}})",
      made.row, json_quote(name));
  return made;
}

void ChromeWriter::begin_negotiation(RankState& state, int rank, const Record& record) {
  const auto& what = tensor(rank, record.set, record.id, record.ticks);
  auto& open = state.negotiates[{record.set, record.id}];
  if (!open) put(state, rank, what.row, begins(fmt::format("NEGOTIATE_{}", what.operation)));
  open = true;
  put(state, rank, what.row, fmt::format(R"("ph": "X", "name": "{}", "dur": 0)", rank));
}

void ChromeWriter::end_in_error(RankState& state, int rank, const Record& record) {
  const auto& what = tensor(rank, record.set, record.id, 0);
  if (state.negotiates.erase({record.set, record.id}) != 0) put(state, rank, what.row, kEnds);
  put(state, rank, what.row, begins("ERROR"));
  put(state, rank, what.row, kEnds);
}

void ChromeWriter::begin(RankState& state, int rank, const Record& record) {
  const auto what = decode_begin(record);
  if (options_.mark_cycles) put(state, rank, 0, R"("ph": "i", "name": "CYCLE_START", "s": "g")");
  if (state.entries.size() >= kMostOpen) state.entries.clear();
  state.entries.push_back({.number = what.entry,
                           .set = what.set,
                           .mover = what.mover,
                           .operation = std::string(operation_name(what.operation)),
                           .ids = {},
                           .lacking = what.tensors});
}

void ChromeWriter::add_members(RankState& state, int rank, const Record& record) {
  if (state.entries.empty() || state.entries.back().lacking == 0) return;
  auto& entry = state.entries.back();
  std::array<std::uint32_t, kMembersPerRecord> ids{};
  const auto count = std::min<std::size_t>(decode_members(record, ids), entry.lacking);
  entry.ids.insert(entry.ids.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  entry.lacking -= static_cast<std::uint32_t>(count);
  if (entry.lacking == 0) open_entry(state, rank, entry);
}

void ChromeWriter::open_entry(RankState& state, int rank, Entry& entry) {
  const bool first = &entry == &state.entries.front();
  for (const auto id : entry.ids) {
    const auto& what = tensor(rank, entry.set, id, 0);
    auto negotiation = state.negotiates.find({entry.set, id});
    if (negotiation != state.negotiates.end()) {
      put(state, rank, what.row, kEnds);
      state.negotiates.erase(negotiation);
    }
    if (what.only_negotiates) continue;
    put(state, rank, what.row, begins(entry.operation));
    if (!first) put(state, rank, what.row, begins("QUEUE"));
  }
  if (first) run(entry);
}

void ChromeWriter::run(Entry& entry) const {
  entry.running = true;
  entry.ran_us = now_us_;
}

void ChromeWriter::add_copies(RankState& state, const Record& record, double ns_per_tick) {
  const auto copies = decode_copies(record);
  const auto us = [ns_per_tick](std::uint64_t ticks) {
    return static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick / 1000);
  };
  for (auto& entry : state.entries) {
    if (entry.number != copies.entry || entry.set != copies.set) continue;
    entry.in_us = us(copies.in);
    entry.out_us = us(copies.out);
  }
}

/// Copies and movements take turns, chunk by chunk: they are shown as if each came in one piece.
void ChromeWriter::put_activities(RankState& state, int rank, int row, const Entry& entry) {
  const auto took = std::max<std::int64_t>(0, now_us_ - entry.ran_us);
  const auto in = std::min(entry.in_us, took);
  const auto out = std::min(entry.out_us, took - in);
  const auto activity = [&](const std::string& what, std::int64_t from, std::int64_t to) {
    put_at(state, rank, row, begins(what), from);
    put_at(state, rank, row, kEnds, to);
  };
  if (in > 0) activity("MEMCPY_IN_FUSION_BUFFER", entry.ran_us, entry.ran_us + in);
  // What lay beside the marks went through shared memory too.
  activity(fmt::format("{}_{}", name(entry.mover == Mover::none ? Mover::shm : entry.mover),
                       entry.operation),
           entry.ran_us + in, now_us_ - out);
  if (out > 0) activity("MEMCPY_OUT_FUSION_BUFFER", now_us_ - out, now_us_);
}

void ChromeWriter::end(RankState& state, int rank, const Record& record) {
  const auto found =
      std::find_if(state.entries.begin(), state.entries.end(), [&record](const Entry& entry) {
        return entry.number == record.x && entry.set == record.set;
      });
  if (found == state.entries.end()) return;
  for (const auto id : found->ids) {
    const auto& what = tensor(rank, found->set, id, 0);
    if (what.only_negotiates) continue;
    if (found->running) {
      put_activities(state, rank, what.row, *found);
    } else {
      put(state, rank, what.row, kEnds);  // Of QUEUE.
    }
    put(state, rank, what.row, what.result);
  }
  state.entries.erase(found);
  if (state.entries.empty() || state.entries.front().running || state.entries.front().lacking != 0)
    return;
  auto& next = state.entries.front();
  for (const auto id : next.ids) {
    const auto& what = tensor(rank, next.set, id, 0);
    if (!what.only_negotiates) put(state, rank, what.row, kEnds);  // Of QUEUE.
  }
  run(next);
}

void ChromeWriter::take(int rank, const Record& record, std::int64_t wall_ns, double ns_per_tick) {
  now_us_ = std::max<std::int64_t>(0, (wall_ns - options_.start_wall_ns) / 1000);
  auto& state = ranks_[rank];
  switch (record.kind) {
    case RecordKind::submit:
      return begin_negotiation(state, rank, record);
    case RecordKind::begin:
      return begin(state, rank, record);
    case RecordKind::members:
      return add_members(state, rank, record);
    case RecordKind::end:
      return end(state, rank, record);
    case RecordKind::mismatch:
      return end_in_error(state, rank, record);
    case RecordKind::declare:
      // The number may have been another name's.
      if (const auto known = tensors_.find({record.set, record.id}); known != tensors_.end()) {
        const auto slot = look_up_(rank, record.set, record.id);
        if (slot && slot->name() != known->second.name) tensors_.erase(known);
      }
      return;
    case RecordKind::none:
    case RecordKind::wait:
    case RecordKind::stall:
    case RecordKind::lost:
      return;
    case RecordKind::copies:
      return add_copies(state, record, ns_per_tick);
  }
}

}  // namespace horo::timeline
