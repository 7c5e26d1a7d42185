// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/cutter.hpp"

#include <algorithm>

#include "runtime/board/entry_words.hpp"
#include "runtime/board/mismatch_text.hpp"
#include "runtime/host/read_once.hpp"
#include "runtime/tensor/fusion_key.hpp"
#include "timeline/record/ticks.hpp"

namespace horo::runtime {

namespace {

/// The part of all names that may be in use by one entry that a member has not run.
constexpr std::uint32_t kShareOfNames = 8;

/// A sum of more bytes takes longer to compute than a thread takes to wake up.
constexpr std::uint64_t kMostComputedLate = 16 << 10;

/// Tensors with the same key may share an entry; on one host they also move in the same way.
std::uint64_t fuse_key(const Signature& s, DataPath path, bool partial) {
  const auto key = fusion_key(s);
  const auto alike = static_cast<std::uint64_t>(path) * 2 + (partial ? 1 : 0);
  return key == 0 ? 0 : (key ^ alike << 1U) | 1U;
}

}  // namespace

Cutter::Cutter(const SetRegion& region, const Directory& directory, Marks& marks, ReadyList& ready,
               EntryLog& log, StartPlaces& places, const AppliedTuning& tuning)
    : region_(region),
      directory_(directory),
      marks_(marks),
      ready_(ready),
      log_(log),
      places_(places),
      tuning_(tuning) {}

bool Cutter::resolve(TensorId id, bool changed) {
  const auto& signatures = directory_.signatures();
  const auto first = signatures.number(id, marks_.first_marked(id));
  if (changed) {
    if (!marks_.same_group(id)) return false;
    for (int m = 0; m < region_.local_size(); ++m) {
      if (!marks_.has_marked(id, m) || signatures.number(id, m) == first) continue;
      if (!compatible(signatures.of(first), signatures.declared(id, m))) return false;
    }
  }
  region_.tensor(id).signature.store(first, std::memory_order_release);
  return true;
}

DataPath Cutter::path_of(std::uint64_t counted, bool partial, MemoryKind memory) const {
  const auto n = region_.params().local_size;
  if (n == 1) return memory == MemoryKind::host ? DataPath::alone : DataPath::staged;
  if (partial) return DataPath::staged;
  if (arrivals::in_line(counted) == n) return DataPath::in_marks;
  if (arrivals::direct(counted) == n) return DataPath::direct;
  return DataPath::staged;
}

PendingSlot Cutter::inspect(TensorId id) {
  const auto counted = marks_.counted(id);
  PendingSlot pending{.id = id.value(),
                      .path = DataPath::staged,
                      .kind = EntryKind::work,
                      .partial = arrivals::marks(counted) < region_.params().local_size,
                      .bytes = 0,
                      .fuse_key = 0};
  if (!resolve(id, arrivals::changed(counted) != 0)) {
    pending.kind = EntryKind::mismatch;
    return pending;
  }
  const auto& signatures = directory_.signatures();
  const auto& s = signatures.agreed(id);
  if (pending.partial && !possible_with_joined(s)) {
    pending.kind = EntryKind::mismatch;
    return pending;
  }
  if (s.kind == Kind::join) pending.kind = EntryKind::join;
  pending.bytes = s.bytes();
  if (first_extent_is_free(s.kind)) {
    pending.bytes = 0;
    for (int m = 0; m < region_.local_size(); ++m)
      pending.bytes += signatures.declared(id, m).bytes();
  }
  pending.path = path_of(counted, pending.partial, s.memory);
  pending.fuse_key = fuse_key(s, pending.path, pending.partial);
  return pending;
}

std::uint32_t Cutter::pending_count() const {
  return std::min(region_.body().pending_count.load(std::memory_order_relaxed),
                  region_.params().capacity);
}

PendingSlot Cutter::pending(std::size_t at) const {
  auto slot = copy_once(region_.tables().pending[at]);
  slot.id &= region_.params().capacity - 1;  // Another process may have written it.
  return slot;
}

void Cutter::take_ready() {
  auto& body = region_.body();
  const auto capacity = region_.params().capacity;
  const auto first = ready_.head();
  auto head = first;
  auto count = pending_count();
  while (count < capacity) {
    const auto id = ready_.at(head);
    if (!id) break;
    ++head;
    region_.tables().pending[count++] = inspect(*id);
  }
  if (head == first) return;
  body.pending_count.store(count, std::memory_order_seq_cst);
  ready_.release(head);
}

/// An entry takes at most its share of the word ring: ids, for an allgather a row count per rank,
/// with joined ranks a signature.
std::size_t Cutter::most_tensors(const PendingSlot& first) const {
  const std::size_t n = region_.params().local_size;
  const auto words_each = 1 + n + (first.partial ? kSignatureWords : 0);
  return std::max<std::size_t>(1, log_.most_words() / words_each);
}

void Cutter::plan(std::size_t most) {
  const auto count = pending_count();
  const auto looked_at = std::min<std::size_t>(count, most);
  candidates_.clear();
  for (std::size_t i = 0; i < looked_at; ++i) {
    const auto pending = this->pending(i);
    candidates_.push_back(
        {.id = TensorId{pending.id}, .bytes = pending.bytes, .fuse_key = pending.fuse_key});
  }
  plan_fusion(
      candidates_,
      {.threshold_bytes = log_.tuning_at_end(tuning_).fusion_threshold, .most_tensors = most},
      taken_);
}

void Cutter::write_words(const PendingSlot& first) {
  const auto& signatures = directory_.signatures();
  const TensorId first_id{first.id};
  words_.clear();
  for (const auto i : taken_) words_.push_back(pending(i).id);
  if (first.kind == EntryKind::mismatch) {
    append_text(words_, to_bytes(describe_mismatch(region_, directory_, marks_, first_id)));
  } else if (first.kind == EntryKind::join) {
    words_.push_back(static_cast<std::uint64_t>(region_.body().last_joined.load()));
  } else if (first.partial) {
    for (const auto i : taken_)
      append_signature(words_, signatures.agreed(TensorId{pending(i).id}));
  } else if (signatures.agreed(first_id).kind == Kind::allgather) {
    for (const auto i : taken_) {
      for (int m = 0; m < region_.local_size(); ++m) {
        const auto& theirs = signatures.declared(TensorId{pending(i).id}, m);
        words_.push_back(static_cast<std::uint64_t>(theirs.extents[0]));
      }
    }
  }
}

void Cutter::remove_taken() {
  auto* const pending = region_.tables().pending;
  const auto count = pending_count();
  std::uint32_t kept = 0;
  std::size_t next_taken = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (next_taken < taken_.size() && taken_[next_taken] == i) {
      ++next_taken;
    } else {
      pending[kept++] = pending[i];
    }
  }
  // A sleeper that reads the larger count looks once more for nothing.
  region_.body().pending_count.store(kept, std::memory_order_release);
}

/// An idle member is not woken for small sums that it computes alone when it looks for them: to
/// wake its own thread takes longer, and takes the core from its caller.
EntryLog::Need Cutter::need_of(const LogSlot& entry, TensorId first) const {
  using Need = EntryLog::Need;
  if (entry.kind != EntryKind::work || entry.path != DataPath::in_marks ||
      directory_.signatures().agreed(first).memory != MemoryKind::host)
    return Need::run;
  // A member that has not run an entry keeps the names of its tensors from being replaced.
  if (entry.count > region_.params().capacity / kShareOfNames) return Need::run;
  // Where the own threads have cores for themselves, they compute large sums beside the callers.
  const bool spare_cores = tuning_.wake_delay_ns() < kLateWakeNs;
  return spare_cores && entry.bytes > kMostComputedLate ? Need::run : Need::nothing;
}

void Cutter::cut_one() {
  const auto first = pending(0);
  plan(most_tensors(first));
  LogSlot entry{};
  entry.kind = first.kind;
  entry.path = first.path;
  entry.partial = first.partial && first.kind == EntryKind::work;
  entry.count = static_cast<std::uint32_t>(taken_.size());
  for (const auto i : taken_) entry.bytes += pending(i).bytes;
  const auto& signatures = directory_.signatures();
  const bool on_device = first.kind == EntryKind::work && !first.partial &&
                         signatures.agreed(TensorId{first.id}).memory == MemoryKind::device;
  if (on_device) entry.place = places_.take();
  write_words(first);
  remove_taken();
  log_.append(entry, words_, need_of(entry, TensorId{first.id}));
  if (on_device) places_.appended(0);
}

/// Ready tensors wait for others, until the cycle time has passed.
bool Cutter::lingers(std::uint64_t ticks) const {
  const auto cycle = tuning_.cycle_ns();
  if (cycle == 0) return false;
  const auto since = ready_.ready_since();
  return since != 0 && ticks < since + timeline::ticks_in(Duration(cycle));
}

bool Cutter::try_combiner() {
  std::uint32_t free = 0;
  return region_.body().combiner.compare_exchange_strong(
      free, static_cast<std::uint32_t>(region_.me()) + 1, std::memory_order_seq_cst);
}

bool Cutter::change_tuning(const Tuning& tuning, std::uint64_t ticks) {
  if (!log_.has_room() || !try_combiner()) return false;
  const bool room = log_.has_room();
  if (room) {
    LogSlot entry{};
    entry.kind = EntryKind::tuning;
    words_.clear();
    append_tuning(words_, tuning);
    log_.append(entry, words_);
  }
  region_.body().combiner.store(0, std::memory_order_seq_cst);
  cut(ticks);  // A rank that found the combiner word taken relies on this look.
  return room;
}

bool Cutter::cut(std::uint64_t ticks) {
  auto& body = region_.body();
  bool published = false;
  while (ready_.has_ready()) {
    if (lingers(ticks) || !log_.has_room()) return published;
    if (!try_combiner()) return published;  // The holder looks again after it lets go.
    take_ready();
    while (body.pending_count.load(std::memory_order_relaxed) != 0 && log_.has_room()) {
      cut_one();
      published = true;
      take_ready();
    }
    body.combiner.store(0, std::memory_order_seq_cst);
  }
  return published;
}

}  // namespace horo::runtime
