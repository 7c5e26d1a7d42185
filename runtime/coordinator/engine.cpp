// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/engine.hpp"

#include <cstring>
#include <utility>

#include "runtime/backends/shm/kernels/kernels.hpp"
#include "runtime/recording.hpp"

namespace horo::runtime {

Engine::Engine(Board& board, OperationTable& operations, std::unique_ptr<Backend> backend,
               std::vector<Rank> ranks)
    : board_(board),
      operations_(operations),
      backend_(std::move(backend)),
      ranks_(std::move(ranks)),
      sources_(static_cast<std::size_t>(board.local_size())),
      blocks_(new std::atomic<LocalTensor*>[board.params().capacity / kBlock + 1]()),
      signatures_(new std::atomic<Signature*>[board.layout().most_signatures / kSignatures + 1]()) {
}

bool Engine::has_news() const {
  if (active_public_.load(std::memory_order_relaxed) != 0) return true;
  if (board_.body().tail.load(std::memory_order_seq_cst) >
      begun_public_.load(std::memory_order_relaxed))
    return true;
  return look_ && board_.needs_leader();
}

Status Engine::health() const {
  const auto broken = broken_.load(std::memory_order_seq_cst);
  if (broken == Errc::ok) return {};
  return fail(broken, "{}", broken_message_);
}

bool Engine::progress() {
  const auto now =
      board_.params().cycle_ns == 0 ? 0 : timeline::ticks_now(timeline::counts_by_processor());
  const auto cut = [&] {
    if (!board_.has_ready() || !board_.cut(now)) return false;
    board_.wake(interest::kEntries);
    return true;
  };
  bool moved = false;
  if (!board_.spans()) {
    moved = cut();
  } else if (board_.needs_leader()) {
    moved = call_leader();
  }
  moved = begin_entries() || moved;
  if (active()) {
    moved = backend_->progress() || moved;
    moved = finish_entries() || moved;
    if (auto health = backend_->health(); !health) [[unlikely]]
      return observe_breakdown(std::move(health)) || moved;
  }
  // Also of those seen before: what was ready as they left may be begun later.
  if (const auto gone = board_.host().body().gone.load(std::memory_order_seq_cst);
      gone != gone_seen_ || (gone != 0 && active())) [[unlikely]]
    moved = observe_departures() || moved;
  // Entries that have ended leave room in the log. What waited for that has nobody else to cut it:
  // its submitters sleep, and this rank's caller may not be back for long.
  if (moved && !board_.spans()) cut();
  return moved;
}

Offer Engine::put_parts(TensorId id, const Signature& s, const Submission& given,
                        Operation& operation) {
  const auto me = board_.me();
  const auto bytes = moves_nothing(s.kind) ? 0 : s.bytes();
  const auto generation = board_.generation(id);
  const bool reads = s.kind != Kind::broadcast || Rank{s.root} == board_.global_rank(me);
  const bool peers_write = s.kind == Kind::allreduce;
  if (s.kind == Kind::alltoall) {
    const auto n = static_cast<std::uint64_t>(size());
    if (board_.spans()) operation.splits.resize(n);
    auto* const rows = board_.spans() ? operation.splits.data() : board_.splits(id, me, generation);
    for (std::uint64_t r = 0; r < n; ++r)
      rows[r] = given.splits.empty() ? s.rows() / n : static_cast<std::uint64_t>(given.splits[r]);
  }
  if (board_.spans()) return {};  // What lies on this host is of no use to the others.
  if (bytes == 0) return {.direct = true, .in_line = true};
  Offer offer;
  if (auto* slot = board_.inline_slot(id, me, generation, bytes); slot != nullptr) {
    if (reads) std::memcpy(slot, given.in, bytes);
    offer.in_line = true;
  }
  if (board_.local_size() > 1) {
    offer.in_offset = reads ? board_.host().offset_in_my_arena(given.in, bytes) : 0;
    offer.out_offset = peers_write ? board_.host().offset_in_my_arena(given.out, bytes) : 0;
    offer.direct = (!reads || offer.in_offset != 0) && (!peers_write || offer.out_offset != 0);
    if (!offer.direct && !offer.in_line) borrow(id, offer);
  }
  return offer;
}

void Engine::borrow(TensorId id, Offer& offer) {
  auto& mine = tensor(id);
  const auto& s = signature(id);
  if (s.op == ReduceOp::adasum && s.kind == Kind::allreduce)
    return;  // Its ranks go in step anyway.
  const auto bytes = s.bytes();
  mine.lent = operations_.lent().take(bytes);
  if (mine.lent == nullptr) return;
  operations_.lent().fill(mine.lent, mine.in, bytes);
  offer.in_offset = board_.host().offset_in_my_arena(mine.lent, bytes);
  if (s.kind == Kind::allreduce) offer.out_offset = offer.in_offset;
  offer.direct = true;
}

void Engine::return_lent(TensorId id, Placement placement) {
  auto& mine = tensor(id);
  if (mine.lent == nullptr) return;
  const auto& s = signature(id);
  if (placement == Placement::direct && s.kind == Kind::allreduce)
    kernels::copy_kernel()(mine.out, mine.lent, s.bytes());
  operations_.lent().put(std::exchange(mine.lent, nullptr), s.bytes());
}

bool Engine::offer(TensorId id, const Submission& given, Operation& operation) {
  auto& mine = tensor(id);
  const auto& s = signature(id);
  mine.in = given.in;
  mine.out = given.out;
  mine.odd = (board_.generation(id) & 1U) != 0;
  return_lent(id, Placement::alone);  // Of a submission that never ran.
  bool completed = false;
  if (s.kind == Kind::join) {
    joined_.store(true, std::memory_order_seq_cst);
    mine.offered.store(true, std::memory_order_release);
    completed = board_.join(id);
  } else {
    auto offer = put_parts(id, s, given, operation);
    offer.changed = !mine.agreed;
    mine.offered.store(true, std::memory_order_release);
    completed = board_.mark(id, offer);
  }
  fail_if_broken(id);
  return completed;
}

bool Engine::call_leader() {
  if (!look_) {
    board_.wake_leader();
    return false;
  }
  look_();
  return true;
}

bool Engine::begin_entries() {
  bool any = false;
  if (!health()) return finish_entries();  // What is published now needs a rank that has left.
  for (;;) {
    const auto may = may_begin();
    if (!may) {
      break_board(may.error());
      return true;
    }
    if (!*may) break;
    auto entry = board_.next(begun_);
    if (!entry) {
      break_board(entry.error());
      return true;
    }
    if (!entry->has_value()) break;
    const bool early = gathers(**entry);
    if (auto status = early ? gather_splits(**entry) : begin(**entry); !status) {
      break_board(status.error());
      return true;
    }
    any = true;
    if (!early) {
      gathering_.reset();
      begun_public_.store(++begun_, std::memory_order_relaxed);
    }
    publish_activity();
  }
  // What ran at once is done at once; the rest waits for its backend.
  return finish_entries() || any;
}

Status Engine::begin(const Entry& entry) {
  Started started;
  for (const auto id : entry.ids) {
    const TensorId tensor_id{static_cast<std::uint32_t>(id)};
    if (offered(tensor_id)) {
      started.ids.push_back(tensor_id);
    } else if (joined_.load(std::memory_order_relaxed)) {
      forget_agreement(tensor_id);
    } else {
      return fail(Errc::protocol,
                  "log entry {} of the board names tensor {} that this rank has not submitted",
                  begun_, id);
    }
  }
  if (entry.kind == EntryKind::join) return end_join(entry, std::move(started));
  if (entry.kind == EntryKind::left) {
    if (left_.value() < 0) left_ = entry.left;  // Those that leave next do so for the first.
    started_.push_back(std::move(started));
    return {};
  }
  if (entry.kind == EntryKind::mismatch) {
    const std::string text(entry.text);
    for (const auto id : started.ids) {
      return_lent(id, Placement::alone);
      record_mismatch(board_.recorded_set(), id);
      complete(id, Errc::mismatch, text);
    }
    started.ids.clear();
    started_.push_back(std::move(started));
    return {};
  }
  HORO_TRY(auto bucket, make_bucket(entry, started));
  count(bucket);
  record_begun(board_.recorded_set(), begun_, entry, bucket, *backend_);
  started.bytes = entry.bytes;
  started.placement = entry.placement;
  switch (entry.placement) {
    case Placement::alone:
      run_alone(bucket);
      break;
    case Placement::in_marks:
      HORO_TRY_STATUS(run_in_marks(bucket));
      break;
    case Placement::direct:
    case Placement::staged:
      if (board_.spans() && bucket.like.op == ReduceOp::adasum) {
        adasum_ = std::make_unique<SpanningAdasum>(std::move(bucket), size(), position());
        started.backend_ticket = kUnknownTicket;
        break;
      }
      HORO_TRY_STATUS(backend_->start(std::move(bucket)));
      started.backend_ticket = backend_->started();
      break;
  }
  started_.push_back(std::move(started));
  return {};
}

void Engine::publish_activity() {
  const auto active = started_.size() + (gathering_ != nullptr ? 1 : 0);
  active_public_.store(static_cast<std::uint32_t>(active), std::memory_order_relaxed);
}

std::uint64_t Engine::bytes_in_flight() const {
  std::uint64_t sum = 0;
  for (const auto& entry : started_) sum += entry.bytes;
  return sum;
}

void Engine::forget_agreement(TensorId id) {
  // The others may have agreed on something else meanwhile.
  if (blocks_[id.index() / kBlock].load(std::memory_order_acquire) != nullptr)
    tensor(id).agreed = false;
}

bool Engine::offered(TensorId id) {
  const auto* block = blocks_[id.index() / kBlock].load(std::memory_order_acquire);
  return block != nullptr && tensor(id).offered.load(std::memory_order_acquire);
}

Status Engine::end_join(const Entry& entry, Started started) {
  for (const auto id : started.ids) {
    auto& operation = operations_.at(tensor(id).operation.load(std::memory_order_relaxed) - 1);
    const auto last = static_cast<std::int32_t>(entry.last_joined.value());
    operation.memory = operations_.results().take(sizeof last);
    if (operation.memory == nullptr) return fail(Errc::out_of_memory, "no memory for a join");
    operation.result = operation.memory.get();
    operation.result_bytes = sizeof last;
    std::memcpy(operation.result, &last, sizeof last);
  }
  joined_.store(false, std::memory_order_seq_cst);
  started_.push_back(std::move(started));
  return {};
}

bool Engine::finish_entries() {
  bool any = false;
  static const std::string none;
  while (!started_.empty() && started_.front().backend_ticket <= backend_->completed()) {
    const auto ids = std::move(started_.front().ids);
    const auto placement = started_.front().placement;
    started_.pop_front();
    publish_activity();
    record_copied(board_.recorded_set(), cursor_, backend_->copied(), copied_);
    record_ended(board_.recorded_set(), cursor_);
    board_.advance(++cursor_);
    for (const auto id : ids) {
      return_lent(id, placement);
      complete(id, Errc::ok, none);
    }
    if (left_.value() >= 0 && started_.empty()) {
      fail_all(Errc::shut_down,
               fmt::format("rank {} has shut down; nothing can complete without it",
                           std::exchange(left_, Rank{-1})));
    }
    any = true;
  }
  // The next entries may wait for these, and who leads, to hear of them.
  if (any && board_.spans() && (board_.me() == 0 || board_.needs_leader())) call_leader();
  return any;
}

void Engine::count(const Bucket& bucket) {
  std::uint64_t bytes = 0, copied = 0;
  for (const auto& part : bucket.parts) {
    const auto size =
        moves_nothing(bucket.like.kind) ? 0 : part.elements * size_of(bucket.like.dtype);
    bytes += size;
    if (offered(part.id) && tensor(part.id).lent != nullptr) copied += size;
  }
  const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t n) {
    counter.fetch_add(n, std::memory_order_relaxed);
  };
  add(counters_.entries, 1);
  add(counters_.tensors, bucket.parts.size());
  add(counters_.bytes, bytes);
  if (bucket.parts.size() > 1) add(counters_.fused_bytes, bytes);
  if (bucket.placement == Placement::direct) add(counters_.direct_bytes, bytes - copied);
}

void Engine::complete(TensorId id, Errc status, const std::string& message) {
  auto& mine = tensor(id);
  if (status == Errc::ok) mine.agreed = true;
  mine.offered.store(false, std::memory_order_relaxed);
  const auto number = mine.operation.exchange(0, std::memory_order_acq_rel);
  if (number == 0) return;
  board_.unpin(id);
  finish(number, status, message);
}

void Engine::finish(std::uint32_t number, Errc status, const std::string& message) {
  if (operations_.at(number - 1).finish(status, message))
    board_.host().body().impatient.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace horo::runtime
