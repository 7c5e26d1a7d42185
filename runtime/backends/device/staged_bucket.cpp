// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/staged_bucket.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/bucket/run_alone.hpp"

namespace horo::runtime {

namespace {

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
  for (const auto& part : bucket_.parts) {
    const auto* const streams = streams_of(part, lane_);
    if (streams != nullptr && std::find(used_.begin(), used_.end(), streams) == used_.end())
      used_.push_back(streams);
  }
  if (!error) note(lane_.gpu() == nullptr ? error.error() : lane_.gpu()->named(error.error()));
  for (auto& planned : plan_staging(bucket_, place_.position, place_.size()))
    pieces_.push_back({.plan = std::move(planned), .copies = {bucket_, lane_}});
}

void StagedBucket::note(const Error& error) {
  if (!error_) return;
  error_ = Failure(error);
  failed_here_ = place_.ranks[static_cast<std::size_t>(place_.position)].value() + 1;
}

bool StagedBucket::has_ended(Piece& piece) {
  const bool ended = piece.copies.look();
  if (!piece.copies.status()) note(piece.copies.status().error());
  return ended;
}

// -- To the host ----------------------------------------------------------------------------------

void StagedBucket::copy_in_host(const Piece& piece) const {
  for (const auto& run : piece.plan.runs) {
    const auto& part = bucket_.parts[run.part];
    if (run.in_bytes == 0 || part.memory != MemoryKind::host) continue;
    std::memcpy(at(piece.slot->memory, run.in),
                at(part.in, run.first * size_of(bucket_.like.dtype)), run.in_bytes);
  }
}

Result<bool> StagedBucket::begin_copy_in(Piece& piece) {
  HORO_TRY(piece.slot,
           lane_.slots().take(lane_.gpu(), std::max<std::uint64_t>(piece.plan.bytes, 1)));
  if (piece.slot == nullptr) return false;
  piece.state = State::coming;
  copy_in_host(piece);
  piece.copies.start_to_host(piece.plan, piece.slot->memory);
  if (!piece.copies.status()) note(piece.copies.status().error());
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
    moved.device = -1;
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

void StagedBucket::copy_out_host(const Piece& piece) const {
  for (const auto& run : piece.plan.runs) {
    const auto& part = bucket_.parts[run.part];
    if (run.out_bytes == 0 || part.out == nullptr || part.memory != MemoryKind::host) continue;
    std::memcpy(at(part.out, run.first * size_of(bucket_.like.dtype)),
                at(piece.slot->memory, run.out), run.out_bytes);
  }
}

void StagedBucket::begin_copy_out(Piece& piece) {
  piece.state = State::going;
  if (!error_) return;  // A result that is not valid goes nowhere.
  copy_out_host(piece);
  piece.copies.start_to_device(piece.plan, piece.slot->memory);
  if (!piece.copies.status()) note(piece.copies.status().error());
}

void StagedBucket::give_back(Piece& piece) {
  if (piece.slot == nullptr) return;
  if (piece.copies.stray() || piece.copies.under_way()) {
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

Status StagedBucket::record_finished(std::initializer_list<Direction> directions) const {
  const auto& own = *lane_.of(bucket_.device);
  auto& device = own.gpu->device();
  for (const auto* const streams : used_) {
    for (const auto direction : directions) {
      auto* const stream = streams->*direction;
      if (stream == own.to_device) continue;
      HORO_TRY(const auto event, streams->gpu->event());
      HORO_TRY_STATUS(streams->gpu->device().record(event.get(), stream));
      HORO_TRY_STATUS(device.wait(own.to_device, event.get()));
    }
  }
  return device.record(bucket_.outcome->finished, own.to_device);
}

/// All copies have begun: a stream that waits for the event comes after them.
void StagedBucket::launch() {
  auto* const outcome = bucket_.outcome;
  if (outcome == nullptr) return;
  const auto* const own = lane_.of(bucket_.device);
  if (!outcome->launched && error_ && own != nullptr && outcome->finished != nullptr) {
    const auto recorded = record_finished({&StagingStreams::to_device});
    if (!recorded) note(own->gpu->named(recorded.error()));
    outcome->launched = recorded.has_value();
  }
  outcome->error = error_;
}

bool StagedBucket::waits_for_device() const {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [](const Piece& piece) { return piece.copies.under_way(); });
}

bool StagedBucket::drain(const Backend& host) {
  bool moved = false;
  for (; drained_ < fed_ && pieces_[drained_].ticket <= host.completed(); ++drained_) {
    begin_copy_out(pieces_[drained_]);
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
  if (outcome == nullptr || outcome->finished == nullptr || lane_.of(bucket_.device) == nullptr)
    return;
  if (outcome->launched) {
    outcome->abandoned = true;
    return;
  }
  const auto marked = record_finished({&StagingStreams::to_host, &StagingStreams::to_device});
  outcome->abandoned = marked.has_value();
}

void StagedBucket::forget() {
  mark_end();
  for (auto& piece : pieces_) give_back(piece);
}

}  // namespace horo::runtime
