// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/ipc/ipc_backend.hpp"

#include <algorithm>
#include <iterator>
#include <thread>

#include "base/deadline.hpp"

namespace horo::runtime {

namespace {

/// A rank that takes longer than the knob `release.timeout` says is killed.
constexpr Duration kDrains = std::chrono::milliseconds(250);
/// For the others to read the slots of a rank that leaves.
constexpr Duration kLeaves = std::chrono::seconds(30);

void* at(const void* memory, std::uint64_t bytes) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(memory)) + bytes;
}

}  // namespace

bool ipc_takes(const Signature& like) {
  return like.kind == Kind::allreduce && ipc_moves(like);
}

bool ipc_moves(const Signature& like) {
  if (like.kind == Kind::allgather) return true;
  const bool reduces = like.kind == Kind::allreduce || like.kind == Kind::reducescatter;
  if (!reduces || like.op == ReduceOp::adasum) return false;
  const bool scaled = like.prescale != 1 || like.postscale != 1;
  const bool extreme = like.op == ReduceOp::min || like.op == ReduceOp::max;
  // A factor of each input can be that of the result only in sums.
  const bool sums = like.op == ReduceOp::sum || like.op == ReduceOp::average;
  if (like.prescale != 1 && !sums) return false;
  if (scaled && !is_floating(like.dtype)) return false;
  if (like.dtype == DType::boolean) return extreme;
  return like.dtype != DType::i64 || like.op != ReduceOp::average;
}

Result<std::unique_ptr<Backend>> IpcBackend::make(Parts parts) {
  HORO_TRY(auto shared, SharedDevice::of(*parts.device));
  HORO_TRY(const auto stream, parts.device->make_urgent_stream());
  return std::unique_ptr<Backend>(new IpcBackend(std::move(parts), shared, stream));
}

IpcBackend::~IpcBackend() {
  leave();
  drain();
  parts_.device->destroy_stream(stream_);
}

Status IpcBackend::start(Bucket bucket) {
  if (bucket.device != parts_.device->index() || bucket.partial || !ipc_moves(bucket.like)) {
    return fail(Errc::unsupported, "backend 'ipc' has no {} of {} by {} on device {}{}",
                name(bucket.like.kind), name(bucket.like.dtype), name(bucket.like.op),
                bucket.device, bucket.partial ? " without all ranks" : "");
  }
  auto flight = std::make_unique<Flight>();
  HORO_TRY(flight->event, parts_.device->make_event());
  flight->bucket = std::move(bucket);
  if (parts_.gpu != nullptr) flight->timer = timer_of(*parts_.gpu, flight->bucket.outcome);
  if (flights_.empty()) moved_ = SteadyClock::instance().now();
  flights_.push_back(std::move(flight));
  ++started_;
  cut(*flights_.back());
  return {};
}

/// The input of a rank, in the order in which it is packed. The elements of a reduce-scatter that
/// one rank gets are together. The outputs of an all-gather are where this rank puts them.
std::vector<IpcBackend::Run> IpcBackend::runs_of(const Bucket& bucket, int rank) const {
  const auto size = size_of(bucket.like.dtype);
  const auto n = parts_.ranks.size();
  const auto own = static_cast<std::size_t>(rank);
  std::vector<Run> runs;
  if (bucket.like.kind == Kind::allreduce) {
    for (const auto& part : bucket.parts)
      runs.push_back({at(part.in, 0), at(part.out, 0), part.elements});
    return runs;
  }
  const bool gathers = bucket.like.kind == Kind::allgather;
  for (std::size_t owner = gathers ? own : 0; owner < (gathers ? own + 1 : n); ++owner) {
    for (std::size_t p = 0; p < bucket.parts.size(); ++p) {
      const auto& part = bucket.parts[p];
      std::uint64_t before = 0;
      for (std::size_t r = p * n; r < p * n + owner; ++r) before += bucket.rows[r];
      const auto count = bucket.rows[p * n + owner] * part.row_elements;
      const auto offset = before * part.row_elements * size;
      if (gathers) {
        runs.push_back({at(part.in, 0), at(part.out, offset), count});
      } else {
        runs.push_back({at(part.in, offset), owner == own ? at(part.out, 0) : nullptr, count});
      }
    }
  }
  return runs;
}

void IpcBackend::add_sums(Flight& flight, std::uint64_t room, std::vector<Piece>& pieces) const {
  const auto size = size_of(flight.bucket.like.dtype);
  std::uint64_t filled = room;
  for (const auto& run : runs_of(flight.bucket, parts_.position)) {
    for (std::uint64_t begin = 0; begin < run.count;) {
      if (filled == room) {
        pieces.push_back({.flight = &flight});
        filled = 0;
      }
      auto& piece = pieces.back();
      const auto count = std::min(run.count - begin, room - filled);
      piece.in.push_back({at(run.in, begin * size), count});
      if (run.out != nullptr) {
        if (piece.out.empty()) piece.reads_from = filled;
        piece.out.push_back({at(run.out, begin * size), count});
      }
      begin += count;
      filled += count;
    }
  }
}

void IpcBackend::add_gathers(Flight& flight, std::uint64_t room, std::vector<Piece>& pieces) const {
  const auto size = size_of(flight.bucket.like.dtype);
  for (std::size_t rank = 0; rank < parts_.ranks.size(); ++rank) {
    std::uint64_t done = 0;
    for (const auto& run : runs_of(flight.bucket, static_cast<int>(rank))) {
      for (std::uint64_t begin = 0; begin < run.count;) {
        const auto number = static_cast<std::size_t>(done / room);
        if (number == pieces.size()) pieces.push_back({.flight = &flight});
        auto& piece = pieces[number];
        piece.gathered.resize(parts_.ranks.size());
        const auto count = std::min(run.count - begin, room - done % room);
        if (static_cast<int>(rank) == parts_.position)
          piece.in.push_back({at(run.in, begin * size), count});
        piece.gathered[rank].push_back({at(run.out, begin * size), count});
        begin += count;
        done += count;
      }
    }
  }
}

void IpcBackend::cut(Flight& flight) {
  const auto room = ipc::kSlotBytes / size_of(flight.bucket.like.dtype);
  std::vector<Piece> pieces;
  if (flight.bucket.like.kind == Kind::allgather) {
    add_gathers(flight, room, pieces);
  } else {
    add_sums(flight, room, pieces);
  }
  if (pieces.empty()) pieces.push_back({.flight = &flight});
  pieces.front().first = pieces.back().last = true;
  std::move(pieces.begin(), pieces.end(), std::back_inserter(pieces_));
}

bool IpcBackend::all_have(std::atomic<std::uint64_t> ipc::Counters::*count,
                          std::uint64_t least) const {
  return std::all_of(parts_.ranks.begin(), parts_.ranks.end(), [&](const auto& rank) {
    return (rank->counters().*count).load(std::memory_order_acquire) >= least;
  });
}

Status IpcBackend::pack(const Piece& piece, std::uint64_t number) {
  auto& device = *parts_.device;
  if (number >= ipc::kSlots) {  // The others have read what was in the slot before.
    for (const auto& rank : parts_.ranks)
      HORO_TRY_STATUS(device.wait(stream_, rank->reduced_event(number)));
  }
  if (piece.first) {
    for (const auto& part : piece.flight->bucket.parts) {
      if (part.ready != nullptr) HORO_TRY_STATUS(device.wait(stream_, part.ready));
    }
  }
  const auto dtype = piece.flight->bucket.like.dtype;
  auto& timer = piece.flight->timer;
  timer.enter(timeline::DevicePhase::pack, stream_);
  HORO_TRY_STATUS(
      shared_.kernels().pack(own().slot(number), piece.in, {.from = dtype, .to = dtype}, stream_));
  timer.leave();
  HORO_TRY_STATUS(device.record(own().packed_event(number), stream_));
  own().counters().packed.store(number + 1, std::memory_order_release);
  return {};
}

Status IpcBackend::reduce(const Piece& piece, std::uint64_t number) {
  auto& device = *parts_.device;
  const auto skipped = piece.reads_from * size_of(piece.flight->bucket.like.dtype);
  std::vector<const void*> slots;
  for (const auto& rank : parts_.ranks) {
    HORO_TRY_STATUS(device.wait(stream_, rank->packed_event(number)));
    slots.push_back(at(rank->slot(number), skipped));
  }
  auto& timer = piece.flight->timer;
  timer.enter(timeline::DevicePhase::ipc, stream_);
  HORO_TRY_STATUS(read_slots(piece, slots));
  timer.leave();
  HORO_TRY_STATUS(device.record(own().reduced_event(number), stream_));
  own().counters().reduced.store(number + 1, std::memory_order_release);
  return piece.last ? finish(*piece.flight) : Status{};
}

Status IpcBackend::read_slots(const Piece& piece, std::span<const void* const> slots) {
  const auto& like = piece.flight->bucket.like;
  for (std::size_t r = 0; r < piece.gathered.size(); ++r) {
    HORO_TRY_STATUS(shared_.kernels().unpack(piece.gathered[r], slots[r],
                                             {.from = like.dtype, .to = like.dtype}, stream_));
  }
  if (piece.out.empty()) return {};
  return shared_.kernels().reduce(
      {.in = slots, .dtype = like.dtype, .op = like.op, .scale = like.prescale * like.postscale},
      piece.out, stream_);
}

Status IpcBackend::finish(Flight& flight) {
  HORO_TRY_STATUS(parts_.device->record(flight.event, stream_));
  flight.launched = true;
  auto* const outcome = flight.bucket.outcome;
  if (outcome == nullptr) return {};
  HORO_TRY_STATUS(parts_.device->record(outcome->finished, stream_));
  outcome->launched = true;
  return {};
}

/// Starts what can be started without waiting. True: something was.
Result<bool> IpcBackend::advance() {
  bool moved = false;
  for (;;) {
    const auto waiting = packed_ - reduced_;
    if (waiting < pieces_.size() && waiting < ipc::kSlots &&
        (packed_ < ipc::kSlots || all_have(&ipc::Counters::reduced, packed_ + 1 - ipc::kSlots))) {
      HORO_TRY_STATUS(pack(pieces_[waiting], packed_));
      ++packed_;
    } else if (waiting > 0 && all_have(&ipc::Counters::packed, reduced_ + 1)) {
      HORO_TRY_STATUS(reduce(pieces_.front(), reduced_));
      pieces_.pop_front();
      ++reduced_;
    } else {
      return moved;
    }
    moved = true;
  }
}

bool IpcBackend::progress() {
  if (!health_ || flights_.empty()) return false;
  if (parts_.gpu != nullptr) parts_.gpu->look_at_clock();
  const auto before = completed_;
  const auto moved = advance();
  if (!moved) {
    health_ = Failure(moved.error());
    return false;
  }
  retire();
  if (health_) health_ = watch(*moved || completed_ != before);
  return *moved || completed_ != before;
}

void IpcBackend::retire() {
  while (!flights_.empty() && flights_.front()->launched) {
    const auto done = parts_.device->done(flights_.front()->event);
    if (!done) health_ = Failure(done.error());
    if (!done || !*done) return;
    read_times(flights_.front()->timer, flights_.front()->bucket.outcome);
    parts_.device->destroy_event(flights_.front()->event);
    flights_.pop_front();
    ++completed_;
  }
}

/// A rank that is only silent may wait for a busy device.
Status IpcBackend::watch(bool moved) {
  const auto now = SteadyClock::instance().now();
  if (moved) moved_ = now;
  // Once all pieces are on the device, no other process is needed.
  if (pieces_.empty() || parts_.timeout == Duration::zero() || now - moved_ < parts_.timeout)
    return {};
  moved_ = now;
  for (std::size_t r = 0; r < parts_.ranks.size(); ++r) {
    if (parts_.ranks[r]->ended())
      return fail(Errc::peer_lost, "the process at position {} of the set has ended", r);
  }
  return {};
}

/// Slots that are freed while a kernel of another rank reads them would break that rank.
bool IpcBackend::has_read(const ipc::Slots& rank) const {
  if (rank.ended()) return true;
  if (rank.counters().reduced.load(std::memory_order_acquire) < reduced_) return false;
  for (auto piece = reduced_ - std::min<std::uint64_t>(reduced_, ipc::kSlots); piece < reduced_;
       ++piece) {
    const auto read = parts_.device->done(rank.reduced_event(piece));
    if (read && !*read) return false;
  }
  return true;
}

void IpcBackend::leave() {
  if (!health_) return;
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, kLeaves);
  for (const auto& rank : parts_.ranks) {
    while (!has_read(*rank) && !deadline.expired(clock.now())) std::this_thread::yield();
  }
}

/// A device drops the work of a process when that has ended.
bool IpcBackend::waits_for_ended() const {
  return std::any_of(parts_.ranks.begin(), parts_.ranks.end(), [this](const auto& rank) {
    if (!rank->ended()) return false;
    for (std::size_t slot = 0; slot < ipc::kSlots; ++slot) {
      for (const auto event : {rank->packed_event(slot), rank->reduced_event(slot)}) {
        const auto done = parts_.device->done(event);
        if (!done || !*done) return true;
      }
    }
    return false;
  });
}

void IpcBackend::abort() {
  const bool never_ends = waits_for_ended();
  for (const auto& flight : flights_) {
    auto* const outcome = flight->bucket.outcome;
    if (outcome == nullptr || outcome->finished == nullptr || never_ends) continue;
    outcome->abandoned =
        outcome->launched || parts_.device->record(outcome->finished, stream_).has_value();
  }
  drain();
}

void IpcBackend::drain() {
  if (health_) health_ = fail(Errc::cancelled, "the backend was stopped");
  pieces_.clear();
  const auto last = parts_.device->make_event();
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, kDrains);
  if (last && !flights_.empty() && parts_.device->record(*last, stream_)) {
    for (auto done = parts_.device->done(*last); done && !*done && !deadline.expired(clock.now());
         done = parts_.device->done(*last))
      std::this_thread::yield();
  }
  if (last) parts_.device->destroy_event(*last);
  for (const auto& flight : flights_) parts_.device->destroy_event(flight->event);
  flights_.clear();
}

}  // namespace horo::runtime
