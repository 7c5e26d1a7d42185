// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/staged_bucket.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/bucket/run_alone.hpp"

namespace horo::runtime {

using timeline::DevicePhase;

namespace {

constexpr int kMostTries = 100;
constexpr std::uint64_t kTold = ~std::uint64_t{0};  // The ticket of a set with one member.

const std::byte* at(const void* memory, std::uint64_t bytes) {
  return static_cast<const std::byte*>(memory) + bytes;
}

std::byte* at(void* memory, std::uint64_t bytes) {
  return static_cast<std::byte*>(memory) + bytes;
}

}  // namespace

StagedBucket::StagedBucket(Bucket bucket, const SetPlace& place, StagingLane& lane, Status error)
    : bucket_(std::move(bucket)), place_(place), lane_(lane) {
  if (!error) note(error.error());
  for (auto& planned : plan_staging(bucket_, place_.position, place_.size()))
    pieces_.emplace_back().plan = std::move(planned);
}

void StagedBucket::note(const Error& error) {
  if (!error_) return;
  error_ = Failure(lane_.gpu() == nullptr ? error : lane_.gpu()->named(error));
  failed_here_ = place_.ranks[static_cast<std::size_t>(place_.position)].value() + 1;
}

// -- To the host ----------------------------------------------------------------------------------

Status StagedBucket::await_parts(const Piece& piece, StreamHandle stream) const {
  auto& device = lane_.gpu()->device();
  EventHandle last = nullptr;
  for (const auto& run : piece.plan.runs) {
    const auto& part = bucket_.parts[run.part];
    if (part.ready != nullptr && part.ready != last)
      HORO_TRY_STATUS(device.wait(stream, part.ready));
    last = part.ready;
  }
  return {};
}

Status StagedBucket::copy_in(Piece& piece) {
  if (piece.timer.measures() && piece.plan.has_input())
    piece.timer.enter(DevicePhase::to_host, lane_.to_host());
  for (const auto& run : piece.plan.runs) {
    const auto& part = bucket_.parts[run.part];
    const auto bytes = run.in_bytes;
    if (bytes == 0) continue;
    const auto* const from = at(part.in, run.first * size_of(bucket_.like.dtype));
    auto* const to = at(piece.slot->memory, run.in);
    if (part.memory == MemoryKind::host) {
      std::memcpy(to, from, bytes);
    } else if (lane_.gpu() != nullptr) {
      HORO_TRY_STATUS(lane_.gpu()->device().copy(to, from, bytes, lane_.to_host()));
    }
  }
  piece.timer.leave();
  return {};
}

/// Has an event tell when the piece's copies have ended.
void StagedBucket::mark(Piece& piece, StreamHandle stream) {
  auto event = lane_.gpu()->event();
  const auto recorded =
      event ? lane_.gpu()->device().record(event->get(), stream) : Status(Failure(event.error()));
  if (piece.unmarked == 0) ++copying_;
  if (recorded) {
    piece.event = std::move(*event);
    return;
  }
  note(recorded.error());
  ++piece.unmarked;
}

Result<bool> StagedBucket::begin_copy_in(Piece& piece) {
  HORO_TRY(piece.slot,
           lane_.slots().take(lane_.gpu(), std::max<std::uint64_t>(piece.plan.bytes, 1)));
  if (piece.slot == nullptr) return false;
  piece.state = State::coming;
  if (lane_.gpu() == nullptr) {
    if (auto copied = copy_in(piece); !copied) note(copied.error());
    return true;
  }
  piece.timer = timer_of(*lane_.gpu(), bucket_.outcome);
  auto copied = await_parts(piece, lane_.to_host());
  if (copied) copied = copy_in(piece);
  if (!copied) note(copied.error());
  mark(piece, lane_.to_host());
  return true;
}

bool StagedBucket::has_ended(Piece& piece) {
  if (piece.event == nullptr) {
    if (piece.unmarked == 0) return true;
    // Where even this fails for ever the device runs nothing any more.
    if (piece.unmarked < kMostTries) {
      mark(piece, piece.state == State::coming ? lane_.to_host() : lane_.to_device());
      return false;
    }
    piece.stray = true;
  } else {
    const auto done = lane_.gpu()->device().done(piece.event.get());
    if (done && !*done) return false;
    if (!done) {
      note(done.error());
      piece.stray = true;
    }
  }
  if (!piece.stray) read_times(piece.timer, bucket_.outcome);
  piece.timer = {};
  piece.event.reset();
  piece.unmarked = 0;
  --copying_;
  return true;
}

Result<bool> StagedBucket::fill() {
  bool moved = false;
  for (; filled_ < pieces_.size(); ++filled_) {
    HORO_TRY(const bool begun, begin_copy_in(pieces_[filled_]));
    if (!begun) break;
    moved = true;
  }
  for (std::size_t p = fed_; p < filled_; ++p) {
    auto& piece = pieces_[p];
    if (piece.state != State::coming) continue;
    if (!has_ended(piece)) break;
    piece.state = State::here;
    moved = true;
  }
  return moved;
}

// -- Between the ranks ----------------------------------------------------------------------------

Bucket StagedBucket::host_bucket(const Piece& piece) const {
  Bucket host{.like = bucket_.like,
              .path = DataPath::staged,
              .parts = {},
              .rows = bucket_.rows,
              .peers = bucket_.peers,
              .longest = bucket_.longest,
              .wire_scale = bucket_.wire_scale,
              .small_message = bucket_.small_message,
              .partial = bucket_.partial};
  host.like.memory = MemoryKind::host;
  for (const auto& run : piece.plan.runs) {
    const auto& part = bucket_.parts[run.part];
    auto& moved = host.parts.emplace_back(part);
    moved.memory = MemoryKind::host;
    moved.ready = nullptr;
    moved.before = {};
    moved.in = at(piece.slot->memory, run.in);
    moved.out = at(piece.slot->memory, run.out);
    moved.elements = run.count;
    if (part.remainder != nullptr) moved.remainder = part.remainder + run.first;
    if (part.result_remainder != nullptr)
      moved.result_remainder = part.result_remainder + run.first;
  }
  return host;
}

Status StagedBucket::move(Piece& piece, Backend& host) {
  auto bucket = host_bucket(piece);
  piece.state = State::moving;
  if (place_.size() == 1) {
    run_alone(bucket);
    return {};
  }
  if (bucket_.like.op == ReduceOp::adasum && place_.spans_hosts()) {
    adasum_ = std::make_unique<SpanningAdasum>(std::move(bucket), place_.size(), place_.position);
    return {};
  }
  HORO_TRY_STATUS(host.start(std::move(bucket)));
  piece.ticket = host.started();
  return {};
}

/// All ranks learn whether one of them could not copy.
Status StagedBucket::tell(Backend& host) {
  if (place_.size() == 1) {
    failed_ = failed_here_;
    telling_ = kTold;
    return {};
  }
  Bucket said{.like = {.kind = Kind::allreduce, .op = ReduceOp::max, .dtype = DType::i64},
              .path = DataPath::staged,
              .parts = {Part{.in = &failed_here_, .out = &failed_, .elements = 1}},
              .small_message = bucket_.small_message};
  HORO_TRY_STATUS(host.start(std::move(said)));
  telling_ = host.started();
  return {};
}

Result<bool> StagedBucket::feed(Backend& host) {
  for (; fed_ < pieces_.size(); ++fed_) {
    auto& piece = pieces_[fed_];
    if (adasum_ == nullptr) {
      if (piece.state != State::here) return false;
      HORO_TRY_STATUS(move(piece, host));
    }
    if (adasum_ != nullptr) {
      HORO_TRY(const bool done, adasum_->advance(host));
      if (!done) return false;
      adasum_.reset();
    }
  }
  if (telling_ == 0) HORO_TRY_STATUS(tell(host));
  return true;
}

// -- Back to the device ---------------------------------------------------------------------------

/// The memory of the results may be in use before these events.
Status StagedBucket::await_results(const Piece& piece) const {
  if (lane_.gpu() == nullptr) return {};
  auto& device = lane_.gpu()->device();
  for (const auto& run : piece.plan.runs) {
    const auto& part = bucket_.parts[run.part];
    if (run.out_bytes == 0 || part.out == nullptr || part.memory == MemoryKind::host) continue;
    for (const auto& event : part.before)
      HORO_TRY_STATUS(device.wait(lane_.to_device(), event.get()));
  }
  return {};
}

Status StagedBucket::copy_out(Piece& piece) {
  HORO_TRY_STATUS(await_results(piece));
  if (lane_.gpu() != nullptr) {
    piece.timer = timer_of(*lane_.gpu(), bucket_.outcome);
    if (piece.timer.measures() && piece.plan.has_result())
      piece.timer.enter(DevicePhase::to_device, lane_.to_device());
  }
  for (const auto& run : piece.plan.runs) {
    const auto& part = bucket_.parts[run.part];
    const auto bytes = run.out_bytes;
    if (bytes == 0 || part.out == nullptr) continue;
    auto* const to = at(part.out, run.first * size_of(bucket_.like.dtype));
    const auto* const from = at(piece.slot->memory, run.out);
    if (part.memory == MemoryKind::host) {
      std::memcpy(to, from, bytes);
      continue;
    }
    if (lane_.gpu() == nullptr) continue;  // The bucket has an error.
    HORO_TRY_STATUS(lane_.gpu()->device().copy(to, from, bytes, lane_.to_device()));
  }
  piece.timer.leave();
  return {};
}

void StagedBucket::give_back(Piece& piece) {
  if (piece.slot == nullptr) return;
  if (piece.stray || piece.event != nullptr) {
    PinnedSlots::abandon(*piece.slot);
  } else {
    PinnedSlots::put(*piece.slot);
  }
  piece.slot = nullptr;
}

/// The ranks have told each other how their copies went.
void StagedBucket::learn() {
  told_ = true;
  if (failed_ == 0 || !error_) return;
  error_ = fail(Errc::io,
                "rank {} could not copy its part between its device and its host; its own error "
                "says why",
                failed_ - 1);
}

/// All copies have begun: a stream that waits for the event comes after them.
void StagedBucket::launch() {
  auto* const outcome = bucket_.outcome;
  if (outcome == nullptr) return;
  if (!outcome->launched && error_ && lane_.gpu() != nullptr && outcome->finished != nullptr) {
    const auto recorded = lane_.gpu()->device().record(outcome->finished, lane_.to_device());
    if (!recorded) note(recorded.error());
    outcome->launched = recorded.has_value();
  }
  outcome->error = error_;
}

bool StagedBucket::drain(const Backend& host) {
  bool moved = false;
  for (; drained_ < fed_ && pieces_[drained_].ticket <= host.completed(); ++drained_) {
    auto& piece = pieces_[drained_];
    piece.state = State::going;
    // A result that is not valid goes nowhere.
    const auto copied = error_ ? copy_out(piece) : Status();
    if (!copied) note(copied.error());
    if (lane_.gpu() != nullptr) mark(piece, lane_.to_device());
    moved = true;
  }
  if (!told_ && telling_ != 0 && (telling_ == kTold || telling_ <= host.completed())) {
    learn();
    moved = true;
  }
  for (; done_ < drained_ && has_ended(pieces_[done_]); ++done_) {
    give_back(pieces_[done_]);
    pieces_[done_].state = State::done;
    moved = true;
  }
  if (told_ && drained_ == pieces_.size()) launch();
  return moved;
}

// -- The end --------------------------------------------------------------------------------------

bool StagedBucket::abandon() {
  bool all = true;
  for (auto& piece : pieces_) {
    if (piece.slot == nullptr) continue;
    if (!has_ended(piece)) {
      all = false;
      continue;
    }
    give_back(piece);
  }
  return all;
}

/// Behind the copies in both directions.
void StagedBucket::mark_end() {
  auto* const outcome = bucket_.outcome;
  if (outcome == nullptr || outcome->finished == nullptr || lane_.gpu() == nullptr) return;
  auto& device = lane_.gpu()->device();
  if (outcome->launched) {
    outcome->abandoned = true;
    return;
  }
  auto marked = device.record(outcome->finished, lane_.to_host());
  if (marked) marked = device.wait(lane_.to_device(), outcome->finished);
  if (marked) marked = device.record(outcome->finished, lane_.to_device());
  outcome->abandoned = marked.has_value();
}

void StagedBucket::forget() {
  mark_end();
  for (auto& piece : pieces_) give_back(piece);
}

}  // namespace horo::runtime
