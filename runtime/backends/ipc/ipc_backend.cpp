// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/ipc/ipc_backend.hpp"

#include <algorithm>
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
  if (like.kind != Kind::allreduce || like.op == ReduceOp::adasum) return false;
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
  if (bucket.device != parts_.device->index() || bucket.partial || !ipc_takes(bucket.like)) {
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

void IpcBackend::cut(Flight& flight) {
  const auto& bucket = flight.bucket;
  const auto size = size_of(bucket.like.dtype);
  const auto room = ipc::kSlotBytes / size;
  Piece piece{.flight = &flight, .in = {}, .out = {}, .first = true};
  std::uint64_t filled = 0;
  for (const auto& part : bucket.parts) {
    for (std::uint64_t begin = 0; begin < part.elements;) {
      if (filled == room) {
        pieces_.push_back(std::exchange(piece, Piece{.flight = &flight, .in = {}, .out = {}}));
        filled = 0;
      }
      const auto count = std::min(part.elements - begin, room - filled);
      piece.in.push_back({at(part.in, begin * size), count});
      piece.out.push_back({at(part.out, begin * size), count});
      begin += count;
      filled += count;
    }
  }
  piece.last = true;
  pieces_.push_back(std::move(piece));
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
  std::vector<const void*> slots;
  for (const auto& rank : parts_.ranks) {
    HORO_TRY_STATUS(device.wait(stream_, rank->packed_event(number)));
    slots.push_back(rank->slot(number));
  }
  const auto& like = piece.flight->bucket.like;
  auto& timer = piece.flight->timer;
  timer.enter(timeline::DevicePhase::ipc, stream_);
  HORO_TRY_STATUS(shared_.kernels().reduce(
      {.in = slots, .dtype = like.dtype, .op = like.op, .scale = like.prescale * like.postscale},
      piece.out, stream_));
  timer.leave();
  HORO_TRY_STATUS(device.record(own().reduced_event(number), stream_));
  own().counters().reduced.store(number + 1, std::memory_order_release);
  return piece.last ? finish(*piece.flight) : Status{};
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
