// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/shm/shm_backend.hpp"

#include <algorithm>
#include <cstring>

namespace horo::runtime {

namespace {

constexpr std::uint64_t kLine = 64;

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
      me_(board.me().value()),
      ranks_(board.local_size()),
      sources_(static_cast<std::size_t>(ranks_)),
      targets_(static_cast<std::size_t>(ranks_)) {}

std::uint64_t ShmBackend::total(const Active& a, int source) const {
  const auto parts = a.bucket.parts.size();
  switch (a.bucket.like.kind) {
    case Kind::allreduce:
      return a.before[parts];
    case Kind::allgather:
      return a.before[static_cast<std::size_t>(source) * (parts + 1) + parts];
    case Kind::broadcast:
      return source == a.bucket.like.root ? a.before[parts] : 0;
    case Kind::barrier:
      return 0;
  }
  return 0;
}

void ShmBackend::measure(Active& a) const {
  const auto& b = a.bucket;
  const auto n = static_cast<std::size_t>(ranks_);
  const bool own_sizes = b.like.kind == Kind::allgather;
  for (std::size_t source = 0; source < (own_sizes ? n : 1); ++source) {
    std::uint64_t sum = 0;
    for (std::size_t p = 0; p < b.parts.size(); ++p) {
      a.before.push_back(sum);
      sum += own_sizes ? b.rows[p * n + source] * b.parts[p].row_elements : b.parts[p].elements;
    }
    a.before.push_back(sum);
  }
  if (own_sizes) {
    for (std::size_t p = 0; p < b.parts.size(); ++p) {
      std::uint64_t row = 0;
      for (std::size_t r = 0; r < n; ++r) {
        a.target.push_back(row * b.parts[p].row_elements);
        row += b.rows[p * n + r];
      }
    }
  }
  const auto element = size_of(b.like.dtype);
  const auto most = direct(a) ? kDirectChunk : board_.layout().staged_chunk;
  if (b.like.kind == Kind::allreduce) {
    a.chunk = chunk_elements(total(a, 0), ranks_, most, element);
    const auto chunks = ceil_div(total(a, 0), a.chunk);
    const auto me = static_cast<std::uint64_t>(me_);
    a.steps = direct(a) ? (chunks > me ? ceil_div(chunks - me, n) : 0) : ceil_div(chunks, n);
    return;
  }
  a.chunk = std::max<std::uint64_t>(1, most / element);
  for (int r = 0; r < ranks_; ++r) a.steps = std::max(a.steps, ceil_div(total(a, r), a.chunk));
}

Status ShmBackend::find_peers(Active& a) {
  const auto element = size_of(a.bucket.like.dtype);
  const bool gather = gathers(a);
  for (std::size_t p = 0; p < a.bucket.parts.size(); ++p) {
    const auto& part = a.bucket.parts[p];
    for (int r = 0; r < ranks_; ++r) {
      const auto& theirs = board_.rank_tensor(part.id, r);
      const auto rows =
          a.bucket.like.kind == Kind::allgather
              ? a.bucket.rows[p * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(r)] *
                    part.row_elements
              : part.elements;
      const auto bytes = rows * element;
      const bool reads = !gather || total(a, r) != 0;
      std::byte* in =
          reads ? board_.peer_memory(r, theirs.in_offset.load(std::memory_order_relaxed), bytes)
                : nullptr;
      std::byte* out =
          gather ? nullptr
                 : board_.peer_memory(r, theirs.out_offset.load(std::memory_order_relaxed), bytes);
      if (reads && (in == nullptr || (!gather && out == nullptr))) {
        return fail(Errc::protocol,
                    "rank {} gave a buffer of tensor '{}' that does not lie in its arena",
                    board_.global_rank(r), board_.tensor_name(part.id));
      }
      a.peer_in.push_back(in);
      a.peer_out.push_back(out);
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
  measure(a);
  if (direct(a)) {
    HORO_TRY_STATUS(find_peers(a));
    a.first_step = next_direct_++;
  } else {
    a.first_step = next_step_;
    next_step_ += a.steps;
  }
  active_.push_back(std::move(a));
  ++started_;
  retire();
  return {};
}

template <typename Use>
void ShmBackend::for_pieces(const Active& a, int source, std::uint64_t first, std::uint64_t count,
                            Use use) const {
  const auto parts = a.bucket.parts.size();
  const auto* before =
      a.before.data() +
      (a.bucket.like.kind == Kind::allgather ? static_cast<std::size_t>(source) * (parts + 1) : 0);
  auto part =
      static_cast<std::size_t>(std::upper_bound(before, before + parts, first) - before - 1);
  std::uint64_t done = 0;
  while (done < count) {
    const auto at = first + done - before[part];
    const auto piece = std::min(count - done, before[part + 1] - before[part] - at);
    if (piece != 0) use(Piece{.part = part, .at = at, .in_chunk = done, .count = piece});
    done += piece;
    ++part;
  }
}

std::byte* ShmBackend::ring_in(int rank, std::uint64_t step, int owner) const {
  const auto& l = board_.layout();
  const auto slot = step % board_.params().ring_slots * static_cast<std::uint64_t>(ranks_) +
                    static_cast<std::uint64_t>(owner);
  return board_.base() + l.rings + static_cast<std::uint64_t>(rank) * l.ring_bytes +
         slot * l.staged_chunk;
}

std::byte* ShmBackend::ring_out(int rank, std::uint64_t step) const {
  const auto& l = board_.layout();
  const std::uint64_t slots = board_.params().ring_slots;
  return board_.base() + l.rings + static_cast<std::uint64_t>(rank) * l.ring_bytes +
         (slots * static_cast<std::uint64_t>(ranks_) + step % slots) * l.staged_chunk;
}

bool ShmBackend::peers_reached(std::atomic<std::uint64_t> RankArea::*counter,
                               std::uint64_t least) const {
  for (int r = 0; r < ranks_; ++r) {
    if (r != me_ && (board_.area(r).*counter).load(std::memory_order_seq_cst) < least) return false;
  }
  return true;
}

void ShmBackend::announce(std::atomic<std::uint64_t> RankArea::*counter, std::uint64_t value) {
  (board_.area(me_).*counter).store(value, std::memory_order_seq_cst);
  wakes_ += static_cast<std::uint64_t>(board_.wake(interest::kChunks));
}

bool ShmBackend::step_in() {
  for (auto& a : active_) {
    if (direct(a) || a.in == a.steps) continue;
    const auto step = a.first_step + a.in;
    const std::uint64_t slots = board_.params().ring_slots;
    if (step >= slots && !peers_reached(&RankArea::reduced, step - slots + 1)) return false;
    if (!gathers(a)) copy_in(a, a.in);
    ++a.in;
    announce(&RankArea::copied_in, step + 1);
    return true;
  }
  return false;
}

bool ShmBackend::step_reduce() {
  for (auto& a : active_) {
    if (direct(a) || a.reduced == a.steps) continue;
    const auto step = a.first_step + a.reduced;
    const std::uint64_t slots = board_.params().ring_slots;
    if (a.reduced == a.in)
      return false;  // Own part first: the counters of a rank keep their order.
    if (step >= slots && !peers_reached(&RankArea::copied_out, step - slots + 1)) return false;
    if (gathers(a)) {
      publish(a, a.reduced);
    } else {
      if (!peers_reached(&RankArea::copied_in, step + 1)) return false;
      reduce(a, a.reduced);
    }
    ++a.reduced;
    announce(&RankArea::reduced, step + 1);
    return true;
  }
  return false;
}

bool ShmBackend::step_out() {
  for (auto& a : active_) {
    if (direct(a) || a.out == a.steps) continue;
    const auto step = a.first_step + a.out;
    if (a.out == a.reduced || !peers_reached(&RankArea::reduced, step + 1)) return false;
    copy_out(a, a.out);
    ++a.out;
    announce(&RankArea::copied_out, step + 1);
    return true;
  }
  return false;
}

void ShmBackend::copy_in(Active& a, std::uint64_t step) {
  const auto element = size_of(a.what.dtype);
  const auto all = total(a, 0);
  for (int owner = 0; owner < ranks_; ++owner) {
    const auto first =
        (step * static_cast<std::uint64_t>(ranks_) + static_cast<std::uint64_t>(owner)) * a.chunk;
    if (owner == me_ || first >= all) continue;
    std::byte* slot = ring_in(me_, a.first_step + step, owner);
    for_pieces(a, 0, first, std::min(a.chunk, all - first), [&](const Piece& piece) {
      const auto* from =
          static_cast<const std::byte*>(a.bucket.parts[piece.part].in) + piece.at * element;
      std::memcpy(slot + piece.in_chunk * element, from, piece.count * element);
    });
  }
}

void ShmBackend::reduce(Active& a, std::uint64_t step) {
  const auto element = size_of(a.what.dtype);
  const auto all = total(a, 0);
  const auto first =
      (step * static_cast<std::uint64_t>(ranks_) + static_cast<std::uint64_t>(me_)) * a.chunk;
  if (first >= all) return;
  const auto kernel = kernels::reduce_to_many_kernel(a.what.dtype, a.what.op);
  std::byte* result = ring_out(me_, a.first_step + step);
  for_pieces(a, 0, first, std::min(a.chunk, all - first), [&](const Piece& piece) {
    const auto& part = a.bucket.parts[piece.part];
    const auto offset = piece.in_chunk * element;
    for (int r = 0; r < ranks_; ++r) {
      sources_[static_cast<std::size_t>(r)] =
          r == me_ ? static_cast<const std::byte*>(part.in) + piece.at * element
                   : ring_in(r, a.first_step + step, me_) + offset;
    }
    void* const targets[] = {result + offset,
                             static_cast<std::byte*>(part.out) + piece.at * element};
    kernel(a.what, targets, 2, sources_.data(), ranks_, piece.count);
  });
}

void ShmBackend::publish(Active& a, std::uint64_t step) {
  const auto element = size_of(a.what.dtype);
  const auto all = total(a, me_);
  const auto first = step * a.chunk;
  if (first >= all) return;
  std::byte* slot = ring_out(me_, a.first_step + step);
  for_pieces(a, me_, first, std::min(a.chunk, all - first), [&](const Piece& piece) {
    const auto& part = a.bucket.parts[piece.part];
    const auto* from = static_cast<const std::byte*>(part.in) + piece.at * element;
    std::memcpy(slot + piece.in_chunk * element, from, piece.count * element);
    const auto begin = a.target.empty() ? 0
                                        : a.target[piece.part * static_cast<std::size_t>(ranks_) +
                                                   static_cast<std::size_t>(me_)];
    auto* to = static_cast<std::byte*>(part.out) + (begin + piece.at) * element;
    if (to != from) std::memcpy(to, from, piece.count * element);
  });
}

void ShmBackend::copy_out(Active& a, std::uint64_t step) {
  const auto element = size_of(a.what.dtype);
  for (int source = 0; source < ranks_; ++source) {
    const auto all = total(a, source);
    const auto first =
        gathers(a)
            ? step * a.chunk
            : (step * static_cast<std::uint64_t>(ranks_) + static_cast<std::uint64_t>(source)) *
                  a.chunk;
    if (source == me_ || first >= all) continue;
    const std::byte* slot = ring_out(source, a.first_step + step);
    for_pieces(a, source, first, std::min(a.chunk, all - first), [&](const Piece& piece) {
      const auto begin = a.target.empty() ? 0
                                          : a.target[piece.part * static_cast<std::size_t>(ranks_) +
                                                     static_cast<std::size_t>(source)];
      auto* to =
          static_cast<std::byte*>(a.bucket.parts[piece.part].out) + (begin + piece.at) * element;
      std::memcpy(to, slot + piece.in_chunk * element, piece.count * element);
    });
  }
}

bool ShmBackend::step_direct() {
  for (auto& a : active_) {
    if (!direct(a)) continue;
    if (a.out == 1) continue;  // Through with its own share.
    if (a.in < a.steps) {
      if (gathers(a)) {
        gather_direct(a, a.in);
      } else {
        reduce_direct(a, a.in);
      }
      ++a.in;
    }
    if (a.in == a.steps) {
      a.out = 1;
      announce(&RankArea::direct_done, a.first_step + 1);
    }
    return true;
  }
  return false;
}

void ShmBackend::reduce_direct(Active& a, std::uint64_t chunk) {
  const auto element = size_of(a.what.dtype);
  const auto n = static_cast<std::size_t>(ranks_);
  const auto first = (chunk * n + static_cast<std::uint64_t>(me_)) * a.chunk;
  const auto kernel = kernels::reduce_to_many_kernel(a.what.dtype, a.what.op);
  for_pieces(a, 0, first, std::min(a.chunk, total(a, 0) - first), [&](const Piece& piece) {
    for (std::size_t r = 0; r < n; ++r) {
      sources_[r] = a.peer_in[piece.part * n + r] + piece.at * element;
      targets_[r] = a.peer_out[piece.part * n + r] + piece.at * element;
    }
    kernel(a.what, targets_.data(), ranks_, sources_.data(), ranks_, piece.count);
  });
}

void ShmBackend::gather_direct(Active& a, std::uint64_t chunk) {
  const auto element = size_of(a.what.dtype);
  const auto n = static_cast<std::size_t>(ranks_);
  for (int source = 0; source < ranks_; ++source) {
    const auto all = total(a, source);
    const auto first = chunk * a.chunk;
    if (first >= all) continue;
    for_pieces(a, source, first, std::min(a.chunk, all - first), [&](const Piece& piece) {
      const auto cell = piece.part * n + static_cast<std::size_t>(source);
      const auto begin = a.target.empty() ? 0 : a.target[cell];
      const auto* from = source == me_
                             ? static_cast<const std::byte*>(a.bucket.parts[piece.part].in)
                             : a.peer_in[cell];
      auto* to =
          static_cast<std::byte*>(a.bucket.parts[piece.part].out) + (begin + piece.at) * element;
      if (to != from + piece.at * element)
        std::memcpy(to, from + piece.at * element, piece.count * element);
    });
  }
}

bool ShmBackend::finished(const Active& a) const {
  if (direct(a)) return a.out == 1 && peers_reached(&RankArea::direct_done, a.first_step + 1);
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
  // Results first: what was copied in last is still in cache, and the rings drain.
  bool moved = step_out();
  moved = step_reduce() || moved;
  moved = step_in() || moved;
  moved = step_direct() || moved;
  return retire() || moved;
}

void ShmBackend::abort() {
  active_.clear();
}

}  // namespace horo::runtime
