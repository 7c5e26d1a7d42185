// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/entry_log.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/board/entry_words.hpp"
#include "runtime/host/read_once.hpp"

namespace horo::runtime {

namespace {

Failure broken(std::uint64_t cursor, std::string_view what) {
  return fail(Errc::protocol, "log entry {} of the board is invalid: {}", cursor, what);
}

}  // namespace

void EntryLog::append(LogSlot entry, std::span<const std::uint64_t> words, Need need) {
  auto& body = region_.body();
  const auto room = region_.layout().word_count;
  auto at = body.next_word;
  if (at % room + words.size() > room) at += room - at % room;  // Entries do not wrap.
  std::copy(words.begin(), words.end(), region_.tables().words + at % room);
  body.next_word = at + words.size();
  const auto tail = body.tail.load(std::memory_order_relaxed);
  entry.sequence = tail + 1;
  entry.first_word = at % room;
  entry.words = static_cast<std::uint32_t>(words.size());
  region_.tables().log[tail % kLogSlots] = entry;
  for (std::uint32_t i = 0; i < entry.count; ++i)
    marks_.begin_generation(TensorId{static_cast<std::uint32_t>(words[i])}, tail + 1);
  if (entry.kind == EntryKind::join) marks_.forget_joins();
  // Before the tail: whoever sees the entry sees whether it is needed.
  if (need == Need::run) body.needed.store(tail + 1, std::memory_order_seq_cst);
  // One release for entry, words and cleared marks. seq_cst for the sleepers: see SetBells.
  body.tail.store(tail + 1, std::memory_order_seq_cst);
}

Tuning EntryLog::tuning_at_end(const AppliedTuning& applied) const {
  auto tuning = applied.value();
  const auto tail = region_.body().tail.load(std::memory_order_relaxed);
  const auto done = region_.area(region_.me()).cursor.load(std::memory_order_relaxed);
  for (auto at = std::min(done, tail); at < tail; ++at) {
    if (region_.tables().log[at % kLogSlots].kind != EntryKind::tuning) continue;
    EntryWords words;
    if (const auto entry = read(at, words); entry && *entry) tuning = (*entry)->tuning;
  }
  return tuning;
}

Result<std::optional<Entry>> EntryLog::read_published(std::uint64_t cursor,
                                                      EntryWords& words) const {
  const auto slot = copy_once(region_.tables().log[cursor % kLogSlots]);
  const auto room = region_.layout().word_count;
  if (slot.sequence != cursor + 1) return broken(cursor, "sequence number");
  if (slot.words > room || slot.first_word > room - slot.words || slot.count > slot.words ||
      (slot.count == 0 && slot.kind != EntryKind::left && slot.kind != EntryKind::tuning))
    return broken(cursor, "extent");
  Entry entry{.kind = slot.kind, .path = slot.path, .bytes = slot.bytes, .place = slot.place};
  const auto* const shared = region_.tables().words + slot.first_word;
  words.assign(shared, shared + slot.words);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::span<const std::uint64_t> all(words);
  entry.ids = all.first(slot.count);
  const auto tensors = region_.tensor_count();
  for (const auto id : entry.ids) {
    if (id >= tensors) return broken(cursor, "tensor id");
  }
  HORO_TRY_STATUS(interpret(slot, cursor, all.subspan(slot.count), entry));
  return std::optional(entry);
}

Status EntryLog::interpret(const LogSlot& slot, std::uint64_t cursor,
                           std::span<const std::uint64_t> words, Entry& entry) const {
  const auto count = words.size();
  switch (slot.kind) {
    case EntryKind::mismatch:
      if (count == 0 || words[0] > (count - 1) * 8) return broken(cursor, "text");
      entry.text = {reinterpret_cast<const char*>(words.data() + 1), words[0]};
      return {};
    case EntryKind::join:
    case EntryKind::left:
      if (count != 1) return broken(cursor, "rank");
      (slot.kind == EntryKind::join ? entry.last_joined : entry.left) =
          Rank{static_cast<int>(words[0])};
      return {};
    case EntryKind::tuning:
      if (count != kTuningWords || words[1] > kLongestTuningTime || words[2] > kLongestTuningTime)
        return broken(cursor, "tuning");
      entry.tuning = {words[0], words[1], words[2], words[3]};
      return {};
    case EntryKind::work:
      if (slot.path == DataPath::carried) {
        entry.inputs = words;
        return {};
      }
      if (slot.path > DataPath::staged) break;
      if (slot.partial) {
        entry.signatures = words;
        if (count != slot.count * kSignatureWords) return broken(cursor, "signatures");
        return {};
      }
      entry.rows = words;
      if (count != 0 && rows_ == Rows::one_per_member &&
          count != slot.count * region_.params().local_size)
        return broken(cursor, "rows");
      return {};
  }
  return broken(cursor, "kind");
}

}  // namespace horo::runtime
