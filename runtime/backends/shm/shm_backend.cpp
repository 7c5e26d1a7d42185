// SPDX-License-Identifier: Apache-2.0
// Buckets in flight; how they move is in shm_staged.cpp and shm_direct.cpp.
#include "runtime/backends/shm/shm_backend.hpp"

#include <algorithm>

namespace horo::runtime {

namespace {

constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kBeyondCaches = 16 << 20;  // Results of all ranks of the host.
constexpr std::uint64_t kDirectCopy = 1 << 20;     // Bytes moved in place between two looks around.

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

/// Chunk of at most `most` bytes that gives every rank something to do, in elements.
std::uint64_t chunk_elements(std::uint64_t elements, int ranks, std::uint64_t most,
                             std::size_t element) {
  const auto share = ceil_div(elements, static_cast<std::uint64_t>(ranks)) * element;
  const auto rounded = ceil_div(std::max<std::uint64_t>(share, 1), kLine) * kLine;
  return std::max<std::uint64_t>(1, std::min(most, rounded) / element);
}

}  // namespace

ShmBackend::ShmBackend(Board& board)
    : board_(board),
      me_(board.me()),
      ranks_(board.local_size()),
      sources_(static_cast<std::size_t>(ranks_)),
      targets_(static_cast<std::size_t>(ranks_)) {}

void ShmBackend::measure(Active& a) const {
  const auto kind = a.bucket.like.kind;
  const auto element = size_of(a.bucket.like.dtype);
  const auto most = direct(a) ? kDirectChunk : board_.layout().staged_chunk;
  const auto n = static_cast<std::uint64_t>(ranks_);
  a.lanes = Lanes(a.bucket, ranks_, me_);
  if (kind == Kind::allreduce && a.what.op == ReduceOp::adasum) {
    const auto staged = board_.layout().staged_chunk;
    a.chunk = (direct(a) ? kDirectCopy : staged) / element / kAdasumUnit * kAdasumUnit;
    a.pieces = ceil_div(a.lanes.longest(), a.chunk);
    // In place nobody waits for a ring: a pass is one step.
    a.adasum = std::make_unique<AdasumRun>(a.bucket.like, a.bucket.parts.size(), ranks_,
                                           direct(a) ? 1 : a.pieces, staged);
    a.steps = a.adasum->steps();
    return;
  }
  if (kind == Kind::allreduce) {
    a.chunk = chunk_elements(a.lanes.total(0), ranks_, most, element);
    a.steps = ceil_div(ceil_div(a.lanes.total(0), a.chunk), n);
    return;
  }
  // Results larger than the caches go around them.
  const auto lanes = kind == Kind::broadcast ? 1 : n;
  if (a.lanes.longest() * lanes * element * n >= kBeyondCaches)
    a.to_result = kernels::stream_copy_kernel();
  // What is only copied need not stay in a core's own cache.
  const auto piece = direct(a) && !reduces(kind) ? kDirectCopy : most;
  a.chunk = std::max<std::uint64_t>(1, piece / element);
  a.steps = ceil_div(a.lanes.longest(), a.chunk);
}

Status ShmBackend::find_peers(Active& a) {
  const auto kind = a.bucket.like.kind;
  const auto element = size_of(a.bucket.like.dtype);
  for (std::size_t p = 0; p < a.bucket.parts.size(); ++p) {
    const auto& part = a.bucket.parts[p];
    for (int r = 0; r < ranks_; ++r) {
      const auto& theirs = board_.rank_tensor(part.id, r);
      const auto bytes = elements_from(a.bucket, p, r, ranks_) * element;
      const bool reads = bytes != 0 && (kind != Kind::broadcast || r == a.bucket.like.root);
      const bool writes = bytes != 0 && kind == Kind::allreduce;
      const auto memory = [&](const std::atomic<std::uint64_t>& offset) {
        return board_.peer_memory(r, offset.load(std::memory_order_relaxed), bytes);
      };
      a.peer_in.push_back(reads ? memory(theirs.in_offset) : nullptr);
      a.peer_out.push_back(writes ? memory(theirs.out_offset) : nullptr);
      if ((reads && a.peer_in.back() == nullptr) || (writes && a.peer_out.back() == nullptr)) {
        return fail(Errc::protocol,
                    "rank {} gave a buffer of tensor '{}' that does not lie in its arena",
                    board_.global_rank(r), board_.tensor_name(part.id));
      }
    }
  }
  return {};
}

Status ShmBackend::start(Bucket bucket) {
  Active a{.bucket = std::move(bucket)};
  const auto& like = a.bucket.like;
  a.what = {.dtype = like.dtype,
            .op = like.op,
            .prescale = like.prescale,
            .postscale = like.postscale,
            .ranks = ranks_};
  a.to_result = kernels::copy_kernel();
  measure(a);
  if (in_steps(a)) {
    a.first_step = next_step_;
    next_step_ += a.steps;
  } else {
    a.first_step = next_direct_++;
  }
  if (direct(a)) {
    auto found = find_peers(a);
    // Without this rank's help its peers may be done by now, and their buffers gone or elsewhere.
    if (!found && !(shared_out(a) && finished(a))) return found;
  }
  active_.push_back(std::move(a));
  ++started_;
  retire();
  return {};
}

bool ShmBackend::others_reached(int member, Count count, std::uint64_t least) const {
  for (int r = 0; r < ranks_; ++r) {
    if (r != member && board_.area(r).count(count).load(std::memory_order_seq_cst) < least)
      return false;
  }
  return true;
}

bool ShmBackend::peers_reached(Count count, std::uint64_t least) {
  // Met or not: what is told depends on this rank's own steps alone, so it is still right when the
  // last look before a sleep finds the others further on, but not far enough.
  auto& awaited = awaited_[static_cast<std::size_t>(count)];
  awaited = std::min(awaited, least);
  return others_reached(me_, count, least);
}

void ShmBackend::tell_awaited() {
  auto& told = board_.area(me_).awaited;
  for (std::size_t i = 0; i < kCounts; ++i) told[i].store(awaited_[i], std::memory_order_relaxed);
}

void ShmBackend::announce(Count count, std::uint64_t value) {
  board_.area(me_).count(count).store(value, std::memory_order_seq_cst);
  if (!board_.any_inside()) return;
  for (int r = 0; r < ranks_; ++r) {
    if (r == me_ || !board_.sleeps_inside(r)) continue;
    const auto least =
        board_.area(r).awaited[static_cast<std::size_t>(count)].load(std::memory_order_relaxed);
    // Not before it can go on: the last of those that it waits for sees all others' counters.
    if (least > value || !others_reached(r, count, least)) continue;
    ring(board_.rank_slot(r));
    ++wakes_;
  }
}

bool ShmBackend::finished(const Active& a) {
  if (shared_out(a)) {
    const auto& done = board_.body().reduced_in_place[a.first_step % kSharedPlaces];
    return done.count(round_of(a)) == a.steps * static_cast<std::uint64_t>(ranks_);
  }
  if (!in_steps(a)) return a.out == 1 && peers_reached(Count::direct_done, a.first_step + 1);
  return a.out == a.steps;
}

bool ShmBackend::retire() {
  bool any = false;
  while (!active_.empty() && finished(active_.front())) {
    active_.pop_front();
    ++completed_;
    any = true;
  }
  return any;
}

bool ShmBackend::progress() {
  if (active_.empty()) return false;
  awaited_.fill(kNotAwaited);
  // Results first: what was copied in last is still in cache, and the rings drain.
  bool moved = step_out();
  moved = step_reduce() || moved;
  moved = step_in() || moved;
  moved = step_direct() || moved;
  moved = retire() || moved;
  if (!moved) tell_awaited();
  return moved;
}

void ShmBackend::abort() {
  active_.clear();
}

}  // namespace horo::runtime
