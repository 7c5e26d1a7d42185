// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome/chrome_writer.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>

#include "base/json.hpp"
#include "timeline/record/name_hash.hpp"

namespace horo::timeline {

namespace {

/// Most entries of one rank that are open at a time. If there are more, their end records were
/// overwritten.
constexpr std::size_t kMostOpen = 1024;
constexpr int kMostRanks = 1 << 24;

}  // namespace

ChromeWriter::ChromeWriter(const ChromeOptions& options, LookUp look_up)
    : options_(options), look_up_(std::move(look_up)) {
  job_.announced = true;
}

std::string ChromeWriter::head() {
  for (auto& [key, tensor] : tensors_) tensor.announced = false;
  for (auto& [key, row] : devices_) row.announced = false;
  return fmt::format(
      R"({{"name": "process_name", "ph": "M", "pid": 0, "args": {{"start_time_since_epoch_in_micros": {}}}}},
{{"name": "process_sort_index", "ph": "M", "pid": 0, "args": {{"sort_index": 0}}}})",
      options_.start_wall_ns / 1000);
}

ChromeWriter::RankState& ChromeWriter::state_of(int rank) {
  if (recent_ != nullptr && recent_->rank == rank) return *recent_;
  const auto [found, made] = ranks_.try_emplace(rank);
  auto& state = found->second;
  if (made) {
    state.rank = rank;
    state.index = ranks_.size() - 1;
    state.submits = fmt::format(R"("ph": "X", "name": "{}", "dur": 0)", rank);
    state.end_of_event = options_.show_ranks ? fmt::format(R"(, "tid": {}}})", rank) : "}";
  }
  recent_ = &state;
  return state;
}

void ChromeWriter::put_at(const RankState& state, Tensor& tensor, std::string_view event,
                          std::int64_t us) {
  if (!tensor.announced) announce(tensor);
  // Clocks on different cores differ slightly; events of a row must not go back in time.
  auto& last = lane(state, tensor).last_us;
  last = std::max(last, us);
  append("{");
  text_ += event;
  text_ += R"(, "ts": )";
  const fmt::format_int time(last);
  text_.append(time.data(), time.size());
  text_ += tensor.row_text;
  text_ += state.end_of_event;
}

ChromeWriter::Tensor& ChromeWriter::tensor(const RankState& state, std::uint16_t set,
                                           std::uint32_t id, std::uint64_t ticks) {
  const auto [found, made] = tensors_.try_emplace(key_of(set, id));
  if (made) name(found->second, set, id, ticks, look_up_(state.rank, set, id));
  return found->second;
}

const DeclaredFacts* ChromeWriter::declared(std::uint16_t set, std::uint32_t id) const {
  const auto found = declared_.find(key_of(set, id));
  return found == declared_.end() ? nullptr : &found->second;
}

void ChromeWriter::name(Tensor& tensor, std::uint16_t set, std::uint32_t id, std::uint64_t ticks,
                        const std::optional<NameSlot>& slot) const {
  const auto* const was = declared(set, id);
  // A name is declared again for each new shape, so only another hash proves another name.
  const bool anothers = slot && slot->since > ticks && ticks != 0 && was != nullptr &&
                        was->name_hash != 0 && was->name_hash != hash_of_name(slot->name());
  tensor.name = slot && !anothers ? slot->name() : "";
  tensor.title = anothers ? fmt::format("tensor {} (later {})", id, slot->name())
                 : slot   ? tensor.name
                          : fmt::format("tensor {}", id);
  if (set != 0) tensor.title += fmt::format(" (process set {})", set);
  describe(tensor, anothers ? std::nullopt : slot, was);
}

void ChromeWriter::announce(Tensor& tensor) {
  tensor.announced = true;
  if (tensor.row == 0) {
    tensor.row = ++rows_;
    tensor.row_text = fmt::format(R"(, "pid": {})", tensor.row);
  }
  append(row_names(tensor.row, tensor.title));
}

void ChromeWriter::submit(RankState& state, const Record& record) {
  if (set_number(record.set) != 0) state.sets.insert(record.set);
  auto& what = tensor(state, record.set, record.id, record.ticks);
  const auto& [last_us, negotiates, runs, arrived, early] = lane(state, what);
  if (!early.empty() && std::find(arrived.begin(), arrived.end(), state.rank) != arrived.end()) {
    // The records of the operation before were lost.
    end_negotiation(state, what);
    show_early(state, what);
  }
  tick(state, what, {.rank = state.rank, .us = now_us_});
}

/// A rank submits a tensor again only after it has ended the operation before. The row's owner may
/// not have ended that one yet: then the submission waits here until its row shows the end.
void ChromeWriter::arrive(const RankState& owner, const RankState& by, const Record& record,
                          int rank) {
  if (rank < 0 || rank >= kMostRanks) return;  // Another process may have written it.
  // The owner has no rows for sets that it is no member of.
  if (set_number(record.set) != 0 && !owner.sets.contains(record.set)) return;
  auto& what = tensor(by, record.set, record.id, record.ticks);
  auto& at = lane(owner, what);
  const bool again = std::find(at.arrived.begin(), at.arrived.end(), rank) != at.arrived.end();
  if (!again && !at.runs) return tick(owner, what, {.rank = rank, .us = now_us_});
  const auto known = std::find_if(at.early.begin(), at.early.end(),
                                  [rank](const Submission& one) { return one.rank == rank; });
  if (known == at.early.end()) at.early.push_back({.rank = rank, .us = now_us_});
}

void ChromeWriter::tick(const RankState& owner, Tensor& what, const Submission& by) {
  if (!lane(owner, what).negotiates) put_at(owner, what, what.negotiates, by.us);
  put_at(owner, what, state_of(by.rank).submits, by.us);
  auto& at = lane(owner, what);
  at.negotiates = true;
  at.arrived.push_back(by.rank);
}

/// Ends the tensor's negotiation, if one has begun.
void ChromeWriter::end_negotiation(const RankState& state, Tensor& what) {
  auto& at = lane(state, what);
  at.arrived.clear();
  if (!std::exchange(at.negotiates, false)) return;
  put(state, what, kEnds);
}

/// Shows the submissions that came before the end of the operation before theirs.
void ChromeWriter::show_early(const RankState& owner, Tensor& what) {
  auto& at = lane(owner, what);
  at.runs = false;
  for (const auto& one : std::exchange(at.early, {})) tick(owner, what, one);
}

void ChromeWriter::end_in_error(const RankState& state, const Record& record) {
  auto& what = tensor(state, record.set, record.id, 0);
  end_negotiation(state, what);
  put(state, what, R"("ph": "B", "name": "ERROR")");
  put(state, what, kEnds);
  show_early(state, what);
}

void ChromeWriter::begin(RankState& state, const Record& record) {
  const auto what = decode_begin(record);
  if (options_.mark_cycles) put(state, job_, R"("ph": "i", "name": "CYCLE_START", "s": "g")");
  // Entry numbers that start again belong to another session.
  const bool too_many = state.entries.size() >= kMostOpen;
  finish_all(state, [&what, too_many](const Entry& entry) {
    return too_many || (entry.set == what.set && entry.number >= what.entry);
  });
  state.entries.push_back({.number = what.entry,
                           .set = what.set,
                           .mover = what.mover,
                           .reason = what.reason,
                           .operation = operation_name(what.operation),
                           .ids = {},
                           .lacking = what.tensors});
}

void ChromeWriter::add_members(RankState& state, const Record& record) {
  if (state.entries.empty() || state.entries.back().lacking == 0) return;
  auto& entry = state.entries.back();
  std::array<std::uint32_t, kMembersPerRecord> ids{};
  const auto count = std::min<std::size_t>(decode_members(record, ids), entry.lacking);
  entry.ids.insert(entry.ids.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  entry.lacking -= static_cast<std::uint32_t>(count);
  if (entry.lacking == 0) open_entry(state, entry);
}

/// Ends all negotiations before the first operation begins, because readers take operations that
/// begin directly after one another for one fused operation.
void ChromeWriter::open_entry(RankState& state, Entry& entry) {
  for (const auto id : entry.ids) end_negotiation(state, tensor(state, entry.set, id, 0));
  put_all(state, entry, begins(entry.operation));
  for (const auto id : entry.ids) {
    auto& what = tensor(state, entry.set, id, 0);
    if (what.only_negotiates) {
      show_early(state, what);
    } else {
      lane(state, what).runs = true;
    }
  }
  if (&entry == &state.entries.front()) {
    run(entry);
  } else {
    put_all(state, entry, kBeginsQueue);
  }
}

void ChromeWriter::put_all(const RankState& state, const Entry& entry, std::string_view event) {
  for (const auto id : entry.ids) {
    auto& what = tensor(state, entry.set, id, 0);
    if (!what.only_negotiates) put(state, what, event);
  }
}

void ChromeWriter::run(Entry& entry) const {
  entry.running = true;
  entry.ran_us = now_us_;
}

/// Copies and data movement alternate, chunk by chunk; each is shown as one piece.
void ChromeWriter::end_running(const RankState& state, const Entry& entry) {
  const auto took = std::max<std::int64_t>(0, now_us_ - entry.ran_us);
  const auto in = std::min(entry.in_us, took);
  const auto out = std::min(entry.out_us, took - in);
  // Payloads that travel with the marks go through shared memory too.
  const auto moves = begins(
      fmt::format("{}_{}", timeline::name(entry.mover == Mover::none ? Mover::shm : entry.mover),
                  entry.operation));
  const auto moved = ends_moving(entry.reason);
  for (const auto id : entry.ids) {
    auto& what = tensor(state, entry.set, id, 0);
    if (what.only_negotiates) continue;
    const auto activity = [&](std::string_view begins, std::string_view ends, std::int64_t from,
                              std::int64_t to) {
      put_at(state, what, begins, from);
      put_at(state, what, ends, to);
    };
    if (in > 0) activity(kBeginsCopyIn, kEnds, entry.ran_us, entry.ran_us + in);
    activity(moves, moved, entry.ran_us + in, now_us_ - out);
    if (out > 0) activity(kBeginsCopyOut, kEnds, now_us_ - out, now_us_);
    put(state, what, what.result);
  }
}

/// Ends QUEUE in the rows of all members.
void ChromeWriter::end_queue(const RankState& state, const Entry& entry, bool and_operation) {
  for (const auto id : entry.ids) {
    auto& what = tensor(state, entry.set, id, 0);
    if (what.only_negotiates) continue;
    put(state, what, kEnds);
    if (and_operation) put(state, what, what.result);
  }
}

void ChromeWriter::finish(const RankState& state, const Entry& entry) {
  if (entry.lacking != 0) return;  // Its rows were never written.
  if (entry.running) {
    end_running(state, entry);
  } else {
    end_queue(state, entry, true);
  }
  for (const auto id : entry.ids) show_early(state, tensor(state, entry.set, id, 0));
}

/// Finishes the entries for which `which` is true.
template <typename Which>
void ChromeWriter::finish_all(RankState& state, Which which) {
  const auto kept =
      std::stable_partition(state.entries.begin(), state.entries.end(), std::not_fn(which));
  std::for_each(kept, state.entries.end(), [&](const Entry& entry) { finish(state, entry); });
  state.entries.erase(kept, state.entries.end());
}

void ChromeWriter::end(RankState& state, const Record& record) {
  // Entries end in order, so the end records of all older entries were lost.
  finish_all(state, [&record](const Entry& entry) {
    return entry.set == record.set && entry.number <= record.x;
  });
  if (state.entries.empty() || state.entries.front().running || state.entries.front().lacking != 0)
    return;
  end_queue(state, state.entries.front(), false);
  run(state.entries.front());
}

void ChromeWriter::declare(const RankState& state, const Record& record) {
  const auto key = key_of(record.set, record.id);
  declared_[key] = {.name_hash = record.y, .bytes = record.x};
  const auto known = tensors_.find(key);
  if (known == tensors_.end()) return;
  const auto slot = look_up_(state.rank, record.set, record.id);
  if (!slot) return;
  if (slot->name() == known->second.name) {
    describe(known->second, slot, declared(record.set, record.id));
  } else if (record.y != hash_of_name(known->second.name)) {
    tensors_.erase(known);
  }
}

ChromeWriter::Tensor& ChromeWriter::device_row(const RankState& state, int device) {
  const auto [found, made] = devices_.try_emplace({state.rank, device});
  auto& row = found->second;
  if (made) {
    row.title = fmt::format("GPU {}: communication stream", device);
    if (options_.show_ranks) row.title = fmt::format("rank {}, {}", state.rank, row.title);
  }
  if (!row.announced) announce(row);
  return row;
}

/// Shows when a device worked, or why that is not known.
void ChromeWriter::show_device(const RankState& state, const Record& record, std::int64_t wall_ns) {
  const auto work = decode_device_phase(record);
  const auto& row = device_row(state, work.device);
  ShownDevicePhase shown{.what = work, .from_ns = wall_ns - options_.start_wall_ns};
  if (options_.show_ranks) shown.rank = state.rank;
  const auto entry = std::find_if(
      state.entries.begin(), state.entries.end(),
      [&](const Entry& one) { return one.set == record.set && one.number == record.x; });
  if (entry != state.entries.end() && entry->lacking == 0 && !entry->ids.empty()) {
    shown.operation = entry->operation;
    shown.tensors = entry->ids.size();
    shown.tensor = tensor(state, record.set, entry->ids.front(), 0).title;
  }
  append(record.kind == RecordKind::device
             ? device_event(shown, row.row_text)
             : no_device_times_event(text(static_cast<NoDeviceTimes>(record.detail)), shown,
                                     row.row_text));
}

void ChromeWriter::take(int rank, const Record& record, std::int64_t wall_ns, double ns_per_tick) {
  now_us_ = std::max<std::int64_t>(0, (wall_ns - options_.start_wall_ns) / 1000);
  auto& state = state_of(rank);
  switch (record.kind) {
    case RecordKind::submit:
      return submit(state, record);
    case RecordKind::begin:
      return begin(state, record);
    case RecordKind::members:
      return add_members(state, record);
    case RecordKind::end:
      return end(state, record);
    case RecordKind::mismatch:
      return end_in_error(state, record);
    case RecordKind::declare:
      return declare(state, record);
    case RecordKind::copies:
      return add_copies(state.entries, decode_copies(record), ns_per_tick);
    case RecordKind::arrival:
      return arrive(state, state, record, static_cast<int>(record.x));
    case RecordKind::member:
      state.sets.insert(record.set);
      return;
    case RecordKind::tuning:
      if (const auto changes = state.tuning.take(record)) put(state, job_, tuning_event(*changes));
      return;
    case RecordKind::generation:
      return put(state, job_, generation_event(decode_generation(record)));
    case RecordKind::device:
    case RecordKind::no_device_times:
      return show_device(state, record, wall_ns);
    case RecordKind::none:
    case RecordKind::wait:
    case RecordKind::stall:
    case RecordKind::lost:
      return;
  }
}

void ChromeWriter::take_from_peer(int owner, int rank, const Record& record, std::int64_t wall_ns) {
  now_us_ = std::max<std::int64_t>(0, (wall_ns - options_.start_wall_ns) / 1000);
  const auto& owners = state_of(owner);
  const auto& peer = state_of(rank);
  if (record.kind == RecordKind::declare) return declare(peer, record);
  if (record.kind == RecordKind::arrival)
    return arrive(owners, peer, record, static_cast<int>(record.x));
  if (record.kind == RecordKind::submit) arrive(owners, peer, record, rank);
}

}  // namespace horo::timeline
