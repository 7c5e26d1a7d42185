// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/engine.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/backends/shm/kernels/kernels.hpp"

namespace horo::runtime {

Engine::Engine(Board& board, OperationTable& operations, std::unique_ptr<Backend> backend,
               const Clock& clock)
    : board_(board),
      operations_(operations),
      backend_(std::move(backend)),
      clock_(clock),
      sources_(static_cast<std::size_t>(board.local_size())),
      blocks_(new std::atomic<LocalTensor*>[board.params().capacity / kBlock + 1]()) {}

void Engine::provide(TensorId id) {
  auto& block = blocks_[id.index() / kBlock];
  if (block.load(std::memory_order_relaxed) != nullptr) return;
  owned_blocks_.push_back(std::make_unique<LocalTensor[]>(kBlock));
  block.store(owned_blocks_.back().get(), std::memory_order_release);
}

bool Engine::has_news() const {
  if (active_public_.load(std::memory_order_relaxed) != 0) return true;
  if (board_.body().tail.load(std::memory_order_seq_cst) >
      begun_public_.load(std::memory_order_relaxed))
    return true;
  if (broken_.load(std::memory_order_relaxed) != Errc::ok) return false;
  return poison_of(board_.header()).cause != LossCause::none;
}

Status Engine::health() const {
  const auto broken = broken_.load(std::memory_order_seq_cst);
  if (broken == Errc::ok) return {};
  return fail(broken, "{}", broken_message_);
}

bool Engine::progress() {
  if (poison_of(board_.header()).cause != LossCause::none) [[unlikely]]
    return observe_poison();
  const auto now = board_.params().cycle_ns == 0
                       ? 0
                       : static_cast<std::uint64_t>(clock_.now().time_since_epoch().count());
  bool moved = false;
  if (board_.has_ready() && board_.cut(now)) {
    board_.wake(interest::kEntries);
    moved = true;
  }
  moved = begin_entries() || moved;
  if (!started_.empty()) {
    moved = backend_->progress() || moved;
    moved = finish_entries() || moved;
  }
  if (board_.body().gone.load(std::memory_order_seq_cst) != gone_seen_) [[unlikely]]
    moved = observe_departures() || moved;
  return moved;
}

Result<bool> Engine::offer(TensorId id, const void* in, void* out, Operation& operation) {
  auto& mine = tensor(id);
  std::uint32_t idle = 0;
  if (!mine.operation.compare_exchange_strong(idle, OperationTable::index_of(operation) + 1,
                                              std::memory_order_seq_cst)) {
    return fail(Errc::duplicate,
                "tensor '{}' is in flight already; wait for it, or use another name",
                board_.tensor_name(id));
  }
  operation.tensor = id;
  mine.in = in;
  mine.out = out;
  const auto& s = mine.signature;
  const auto me = board_.me().value();
  const auto bytes = s.kind == Kind::barrier ? 0 : s.bytes();
  const bool reads = s.kind != Kind::broadcast || Rank{s.root} == board_.global_rank(me);
  const bool writes = s.kind == Kind::allreduce;
  Offer offer{.changed = !mine.has_agreed || mine.agreed != s};
  const auto generation = mine.generation.load(std::memory_order_relaxed);
  if (bytes == 0) {
    offer.in_line = true;
  } else if (auto* slot = board_.inline_slot(id, me, generation, bytes); slot != nullptr) {
    if (reads) std::memcpy(slot, in, bytes);
    offer.in_line = true;
  } else if (board_.local_size() > 1) {
    offer.in_offset = reads ? board_.offset_in_my_arena(in, bytes) : 0;
    offer.out_offset = writes ? board_.offset_in_my_arena(out, bytes) : 0;
    offer.direct = (!reads || offer.in_offset != 0) && (!writes || offer.out_offset != 0);
  }
  mine.offered.store(true, std::memory_order_release);
  const bool completed = board_.mark(id, offer);
  fail_if_broken(id);
  return completed;
}

bool Engine::begin_entries() {
  bool any = false;
  for (;;) {
    auto entry = board_.next(begun_);
    if (!entry) {
      break_board(entry.error());
      return true;
    }
    if (!entry->has_value()) break;
    if (auto status = begin(**entry); !status) {
      break_board(status.error());
      return true;
    }
    ++begun_;
    begun_public_.store(begun_, std::memory_order_relaxed);
    active_public_.store(static_cast<std::uint32_t>(started_.size()), std::memory_order_relaxed);
    any = true;
  }
  // What ran at once is done at once; the rest waits for its backend.
  return finish_entries() || any;
}

Status Engine::begin(const Entry& entry) {
  Started started;
  for (const auto id : entry.ids) {
    const TensorId tensor_id{static_cast<std::uint32_t>(id)};
    const auto* block = blocks_[tensor_id.index() / kBlock].load(std::memory_order_acquire);
    if (block == nullptr || !tensor(tensor_id).offered.load(std::memory_order_acquire)) {
      return fail(Errc::protocol,
                  "log entry {} of the board names tensor {} that this rank has not submitted",
                  begun_, id);
    }
    started.ids.push_back(tensor_id);
  }
  if (entry.kind == EntryKind::mismatch) {
    const std::string text(entry.text);
    for (const auto id : started.ids) complete(id, Errc::mismatch, text);
    started.ids.clear();
    started_.push_back(std::move(started));
    return {};
  }
  HORO_TRY(auto bucket, make_bucket(entry));
  count(bucket);
  switch (entry.placement) {
    case Placement::alone:
      run_alone(bucket);
      break;
    case Placement::in_marks:
      HORO_TRY_STATUS(run_in_marks(bucket));
      break;
    case Placement::direct:
    case Placement::staged:
      HORO_TRY_STATUS(backend_->start(std::move(bucket)));
      started.backend_ticket = backend_->started();
      break;
  }
  started_.push_back(std::move(started));
  return {};
}

Result<Bucket> Engine::make_bucket(const Entry& entry) {
  Bucket bucket;
  bucket.placement = entry.placement;
  bucket.parts.reserve(entry.ids.size());
  const auto n = static_cast<std::size_t>(board_.local_size());
  std::size_t position = 0;
  for (const auto raw : entry.ids) {
    const TensorId id{static_cast<std::uint32_t>(raw)};
    auto& mine = tensor(id);
    Part part{.id = id, .in = mine.in, .out = mine.out, .elements = mine.signature.elements};
    if (mine.signature.kind == Kind::allgather) {
      if (entry.rows.empty())
        return fail(Errc::protocol, "log entry {} of the board has no row counts", begun_);
      HORO_TRY_STATUS(provide_output(id, entry.rows.subspan(position * n, n), part));
    }
    const auto& first = position == 0 ? mine.signature : tensor(bucket.parts.front().id).signature;
    if (first.kind != mine.signature.kind || first.dtype != mine.signature.dtype ||
        first.op != mine.signature.op) {
      return fail(Errc::protocol,
                  "log entry {} of the board fuses tensors that do not fit together", begun_);
    }
    bucket.parts.push_back(part);
    ++position;
  }
  bucket.like = tensor(bucket.parts.front().id).signature;
  if (bucket.like.kind == Kind::broadcast) bucket.like.root = local_rank_of(Rank{bucket.like.root});
  bucket.rows.assign(entry.rows.begin(), entry.rows.end());
  return bucket;
}

Status Engine::provide_output(TensorId id, std::span<const std::uint64_t> rows, Part& part) {
  auto& mine = tensor(id);
  auto& operation = operations_.at(mine.operation.load(std::memory_order_relaxed) - 1);
  std::uint64_t total = 0;
  std::uint64_t row_elements = 1;
  for (int d = 1; d < std::min<int>(mine.signature.ndim, Signature::kDims); ++d) {
    row_elements *= static_cast<std::uint64_t>(mine.signature.extents[static_cast<std::size_t>(d)]);
  }
  if (mine.signature.ndim > Signature::kDims) row_elements = mine.signature.row_elements();
  operation.rows.clear();
  for (const auto count : rows) {
    if (count > (std::uint64_t{1} << 48U))
      return fail(Errc::protocol, "log entry {} of the board claims {} rows", begun_, count);
    total += count;
    operation.rows.push_back(static_cast<std::int64_t>(count));
  }
  part.row_elements = row_elements;
  operation.result_bytes = total * row_elements * size_of(mine.signature.dtype);
  operation.result.reset(std::malloc(std::max<std::uint64_t>(operation.result_bytes, 1)));
  if (operation.result == nullptr) {
    return fail(Errc::out_of_memory, "{} bytes for the result of allgather '{}' cannot be had",
                operation.result_bytes, board_.tensor_name(id));
  }
  part.out = operation.result.get();
  return {};
}

void Engine::run_alone(const Bucket& bucket) {
  const auto& like = bucket.like;
  const auto element = size_of(like.dtype);
  for (const auto& part : bucket.parts) {
    if (like.kind == Kind::barrier || part.elements == 0) continue;
    if (like.kind == Kind::allreduce) {
      const kernels::Reduction what{.dtype = like.dtype,
                                    .op = like.op,
                                    .prescale = like.prescale,
                                    .postscale = like.postscale};
      kernels::reduce_kernel(like.dtype, like.op)(what, part.out, &part.in, 1, part.elements);
    } else if (part.in != part.out) {
      std::memcpy(part.out, part.in, part.elements * element);
    }
  }
}

Status Engine::run_in_marks(const Bucket& bucket) {
  const auto& like = bucket.like;
  const auto element = size_of(like.dtype);
  const auto n = static_cast<std::size_t>(board_.local_size());
  if (like.kind == Kind::barrier) return {};
  std::size_t position = 0;
  for (const auto& part : bucket.parts) {
    const auto generation = tensor(part.id).generation.load(std::memory_order_relaxed);
    auto* to = static_cast<std::byte*>(part.out);
    for (std::size_t r = 0; r < n; ++r) {
      const auto elements = like.kind == Kind::allgather
                                ? bucket.rows[position * n + r] * part.row_elements
                                : part.elements;
      const auto bytes = elements * element;
      const std::byte* from =
          bytes == 0 ? nullptr
                     : board_.inline_slot(part.id, static_cast<int>(r), generation, bytes);
      if (bytes != 0 && from == nullptr) {
        return fail(Errc::protocol, "tensor '{}' has no payload slot on the board",
                    board_.tensor_name(part.id));
      }
      sources_[r] = from;
      if (like.kind == Kind::allgather && bytes != 0) {
        std::memcpy(to, from, bytes);
        to += bytes;
      }
      if (like.kind == Kind::broadcast && static_cast<int>(r) == like.root && bytes != 0)
        std::memcpy(to, from, bytes);
    }
    if (like.kind == Kind::allreduce && part.elements != 0) {
      const kernels::Reduction what{.dtype = like.dtype,
                                    .op = like.op,
                                    .prescale = like.prescale,
                                    .postscale = like.postscale,
                                    .ranks = board_.local_size()};
      kernels::reduce_kernel(like.dtype, like.op)(what, part.out, sources_.data(),
                                                  board_.local_size(), part.elements);
    }
    ++position;
  }
  return {};
}

bool Engine::finish_entries() {
  bool any = false;
  static const std::string none;
  while (!started_.empty() && started_.front().backend_ticket <= backend_->completed()) {
    const auto ids = std::move(started_.front().ids);
    started_.pop_front();
    active_public_.store(static_cast<std::uint32_t>(started_.size()), std::memory_order_relaxed);
    board_.advance(++cursor_);
    for (const auto id : ids) complete(id, Errc::ok, none);
    any = true;
  }
  return any;
}

void Engine::count(const Bucket& bucket) {
  std::uint64_t bytes = 0;
  for (const auto& part : bucket.parts) bytes += part.elements * size_of(bucket.like.dtype);
  if (bucket.like.kind == Kind::barrier) bytes = 0;
  const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t n) {
    counter.fetch_add(n, std::memory_order_relaxed);
  };
  add(counters_.entries, 1);
  add(counters_.tensors, bucket.parts.size());
  add(counters_.bytes, bytes);
  if (bucket.parts.size() > 1) add(counters_.fused_bytes, bytes);
  if (bucket.placement == Placement::direct) add(counters_.direct_bytes, bytes);
}

void Engine::complete(TensorId id, Errc status, const std::string& message) {
  auto& mine = tensor(id);
  mine.generation.fetch_add(1, std::memory_order_relaxed);
  if (status == Errc::ok) {
    mine.agreed = mine.signature;
    mine.has_agreed = true;
  }
  mine.offered.store(false, std::memory_order_relaxed);
  const auto number = mine.operation.exchange(0, std::memory_order_acq_rel);
  if (number != 0) finish(number, status, message);
}

void Engine::finish(std::uint32_t number, Errc status, const std::string& message) {
  if (operations_.at(number - 1).finish(status, message))
    board_.body().impatient.fetch_sub(1, std::memory_order_relaxed);
}

int Engine::local_rank_of(Rank rank) const {
  for (int r = 0; r < board_.local_size(); ++r) {
    if (board_.global_rank(r) == rank) return r;
  }
  return -1;
}

}  // namespace horo::runtime
