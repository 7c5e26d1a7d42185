// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/leader_port.hpp"

#include "base/race_point.hpp"
#include "runtime/board/entry_words.hpp"
#include "runtime/tensor/carried_sum.hpp"

namespace horo::runtime {

LeaderPort::LeaderPort(const SetRegion& region, Directory& directory, const Marks& marks,
                       ReadyList& ready, EntryLog& log, StartPlaces& places, const SetBells& bells)
    : region_(region),
      directory_(directory),
      marks_(marks),
      ready_(ready),
      log_(log),
      places_(places),
      bells_(bells) {}

bool LeaderPort::needs_leader() const {
  const auto& body = region_.body();
  if (body.leaves.load(std::memory_order_seq_cst) !=
      body.leaves_taken.load(std::memory_order_seq_cst))
    return true;
  const bool waiting = body.entries_wait.load(std::memory_order_seq_cst) != 0;
  if (waiting && log_.has_room()) return true;
  const auto done = region_.area(0).cursor.load(std::memory_order_seq_cst);
  if (done != body.done_taken.load(std::memory_order_relaxed)) return true;
  // Tensors that become ready while entries are still to be run wait, and travel together.
  if (waiting || log_.published() - done >= region_.params().depth) return false;
  return ready_.has_ready() || body.joins_told.load(std::memory_order_seq_cst) !=
                                   body.joins_taken.load(std::memory_order_seq_cst);
}

void LeaderPort::leave() {
  if (region_.me() >= 0) return leave(region_.me());
  for (int m = 0; m < region_.local_size(); ++m) leave(m);
}

void LeaderPort::leave(int member) {
  auto& body = region_.body();
  const auto m = static_cast<std::size_t>(member);
  const auto bit = std::uint64_t{1} << (m % 64);
  if ((body.leaving[m / 64].fetch_or(bit, std::memory_order_seq_cst) & bit) != 0) return;
  body.leaves.fetch_add(1, std::memory_order_seq_cst);
  bells_.wake_leader();
}

std::uint64_t LeaderPort::take_done() {
  const auto done = region_.area(0).cursor.load(std::memory_order_seq_cst);
  race_point();
  region_.body().done_taken.store(done, std::memory_order_relaxed);
  return done;
}

void LeaderPort::take_ready(std::vector<TensorId>& out) {
  const auto& signatures = directory_.signatures();
  const auto first = ready_.head();
  auto head = first;
  while (const auto id = ready_.at(head)) {
    ++head;
    region_.tensor(*id).signature.store(signatures.number(*id, marks_.first_marked(*id)),
                                        std::memory_order_release);
    out.push_back(*id);
  }
  if (head != first) ready_.release(head);
}

std::optional<std::string> LeaderPort::inputs(TensorId id) const {
  const auto members = region_.params().local_size;
  if (arrivals::in_line(marks_.counted(id)) != members) return std::nullopt;
  const auto bytes = directory_.signatures().declared(id, 0).bytes();
  if (bytes == 0 || bytes > kMostCarriedBytes / members) return std::nullopt;
  std::string inputs;
  for (int m = 0; m < region_.local_size(); ++m) {
    const auto* const place = directory_.memory().payload(id, m, marks_.generation(id), bytes);
    if (place == nullptr) return std::nullopt;
    inputs.append(reinterpret_cast<const char*>(place), bytes);
  }
  return inputs;
}

Result<std::optional<TensorId>> LeaderPort::define(std::string_view name,
                                                   const Signature& signature) {
  auto held = directory_.hold(name, signature);
  if (!held && held.error().code == Errc::resource_exhausted) {
    // Announce, then look again, as publish() does: slots become free when entries have been run.
    region_.body().entries_wait.store(1, std::memory_order_seq_cst);
    race_point();
    const bool more_will = log_.in_flight() != 0;
    held = directory_.hold(name, signature);
    if (!held && held.error().code == Errc::resource_exhausted && more_will)
      return std::optional<TensorId>();
  }
  if (!held) return Failure(std::move(held).error());
  return std::optional(*held);
}

std::vector<Rank> LeaderPort::take_new(Mask& seen, const SharedMask& now,
                                       std::atomic<std::uint32_t>& taken) const {
  auto all = seen;
  std::vector<Rank> fresh;
  for (int m = 0; m < region_.local_size(); ++m) {
    const auto word = static_cast<std::size_t>(m) / 64;
    const auto bit = std::uint64_t{1} << (m % 64);
    if ((now[word].load(std::memory_order_seq_cst) & ~all[word] & bit) == 0) continue;
    all[word] |= bit;
    fresh.push_back(region_.global_rank(m));
  }
  // A rank adds to the ready list before it says that it joins or leaves. Another rank that is in
  // the middle of adding may still hide what it added.
  race_point();
  if (!ready_.is_settled()) return {};
  seen = all;
  taken.fetch_add(static_cast<std::uint32_t>(fresh.size()), std::memory_order_seq_cst);
  return fresh;
}

std::vector<Rank> LeaderPort::take_joined() {
  auto& body = region_.body();
  return take_new(joined_seen_, body.joined_told, body.joins_taken);
}

std::vector<Rank> LeaderPort::take_leaving() {
  auto& body = region_.body();
  return take_new(leaving_seen_, body.leaving, body.leaves_taken);
}

std::uint64_t LeaderPort::take_place(TensorId first) {
  return directory_.signatures().agreed(first).memory == MemoryKind::device ? places_.take() : 0;
}

LogSlot LeaderPort::slot_for(const AgreedEntry& agreed) const {
  LogSlot entry{};
  entry.kind = agreed.kind;
  entry.path = DataPath::direct;
  entry.place = agreed.place;
  entry.count = static_cast<std::uint32_t>(agreed.ids.size());
  for (const auto id : agreed.ids) {
    const auto counted = marks_.counted(id);
    if (arrivals::direct(counted) != region_.params().local_size) entry.path = DataPath::staged;
    entry.partial = entry.partial || (agreed.kind == EntryKind::work && marks_.is_partial(id));
    entry.bytes += directory_.signatures().agreed(id).bytes();
  }
  if (!agreed.inputs.empty()) entry.path = DataPath::carried;
  return entry;
}

void LeaderPort::write_words(const AgreedEntry& agreed, bool partial) {
  words_.clear();
  for (const auto id : agreed.ids) words_.push_back(id.value());
  switch (agreed.kind) {
    case EntryKind::mismatch:
      append_text(words_, agreed.text);
      break;
    case EntryKind::join:
    case EntryKind::left:
      words_.push_back(static_cast<std::uint64_t>(agreed.rank.value()));
      break;
    case EntryKind::tuning:
      append_tuning(words_, agreed.tuning);
      break;
    case EntryKind::work:
      for (const auto& inputs : agreed.inputs) append_bytes(words_, inputs);
      if (!agreed.inputs.empty()) break;
      if (!partial) {
        words_.insert(words_.end(), agreed.rows.begin(), agreed.rows.end());
        break;
      }
      for (const auto id : agreed.ids) append_signature(words_, directory_.signatures().agreed(id));
      break;
  }
}

bool LeaderPort::publish(const AgreedEntry& agreed) {
  auto& body = region_.body();
  if (!log_.has_room()) {
    // Announce, then look again: a rank that makes room does so first and then looks for this.
    body.entries_wait.store(1, std::memory_order_seq_cst);
    race_point();
    if (!log_.has_room()) return false;
  }
  body.entries_wait.store(0, std::memory_order_seq_cst);
  const auto entry = slot_for(agreed);
  write_words(agreed, entry.partial);
  if (agreed.kind == EntryKind::join) joined_seen_ = {};
  log_.append(entry, words_);
  if (agreed.place != 0) places_.appended(agreed.next_place);
  if (agreed.kind == EntryKind::left) body.closed.store(1, std::memory_order_release);
  return true;
}

}  // namespace horo::runtime
