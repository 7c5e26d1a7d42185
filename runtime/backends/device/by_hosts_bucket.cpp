// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/by_hosts_bucket.hpp"

#include <algorithm>
#include <utility>

namespace horo::runtime {

using timeline::DevicePhase;

namespace {

std::byte* byte_at(const void* memory, std::uint64_t bytes) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(memory)) + bytes;
}

}  // namespace

ByHostsBucket::ByHostsBucket(Bucket bucket, StagingLane& staging, ByHostsLane& lane, Backend& local)
    : bucket_(std::move(bucket)), staging_(staging), lane_(lane), local_(local) {
  const auto& place = lane_.place();
  const auto bytes = kSliceBytes * static_cast<std::uint64_t>(place.hierarchy.owners);
  for (auto& cuts : cut_bucket(bucket_, bytes)) {
    auto& stretch = stretches_.emplace_back();
    for (const auto& cut : cuts) stretch.elements += cut.count;
    stretch.own = place.slice_of(stretch.elements, place.hierarchy.local_rank);
    stretch.cuts = std::move(cuts);
  }
}

std::byte* ByHostsBucket::slice_of(const Stretch& stretch) const {
  const auto& place = lane_.place();
  return byte_at(
      stretch.block->memory(),
      place.first_of(stretch.elements, place.hierarchy.local_rank) * size_of(bucket_.like.dtype));
}

std::vector<DeviceSpan> ByHostsBucket::spans(const Stretch& stretch, bool results) const {
  std::vector<DeviceSpan> found;
  for (const auto& cut : stretch.cuts) {
    const auto& part = bucket_.parts[cut.part];
    const void* const memory = results ? part.out : part.in;
    found.push_back({byte_at(memory, cut.first * size_of(bucket_.like.dtype)), cut.count});
  }
  return found;
}

/// Puts a new event on the stream.
Status ByHostsBucket::record(SharedEvent& event, StreamHandle stream) const {
  HORO_TRY(auto made, lane_.gpu().event());
  HORO_TRY_STATUS(device().record(made.get(), stream));
  event = std::move(made);
  return {};
}

// -- Among the devices of a host ------------------------------------------------------------------

/// The host adds up; averages and scaling belong to the sum between hosts.
Signature ByHostsBucket::like_of(Kind kind) const {
  auto like = bucket_.like;
  like.kind = kind;
  if (like.op == ReduceOp::average) like.op = ReduceOp::sum;
  like.prescale = like.postscale = 1;
  return like;
}

Status ByHostsBucket::start_step(Step& step, Bucket bucket, const void* in, std::uint64_t elements,
                                 void* out) {
  HORO_TRY(step.finished, lane_.gpu().event());
  step.outcome.finished = step.finished.get();
  step.outcome.times = bucket_.outcome == nullptr ? nullptr : bucket_.outcome->times;
  bucket.parts = {Part{.in = in,
                       .out = out,
                       .elements = elements,
                       .row_elements = 1,
                       .memory = MemoryKind::device,
                       .ready = step.ready.get()}};
  bucket.device = bucket_.device;
  bucket.place = bucket_.place;
  bucket.outcome = &step.outcome;
  HORO_TRY_STATUS(local_.start(std::move(bucket)));
  step.ticket = local_.started();
  return {};
}

Status ByHostsBucket::pack(Stretch& stretch) const {
  auto* const stream = lane_.packing();
  for (const auto& event : stretch.block->before())
    HORO_TRY_STATUS(device().wait(stream, event.get()));
  for (const auto& cut : stretch.cuts) {
    auto* const ready = bucket_.parts[cut.part].ready;
    if (ready != nullptr) HORO_TRY_STATUS(device().wait(stream, ready));
  }
  const auto parts = spans(stretch, false);
  const auto dtype = bucket_.like.dtype;
  if (device().packer() != nullptr) {
    return device().packer()->pack(stretch.block->memory(), parts, {.from = dtype, .to = dtype},
                                   stream);
  }
  auto* to = static_cast<std::byte*>(stretch.block->memory());
  for (const auto& part : parts) {
    const auto bytes = part.elements * size_of(dtype);
    HORO_TRY_STATUS(device().copy(to, part.memory, bytes, stream));
    to += bytes;
  }
  return {};
}

Status ByHostsBucket::scatter(Stretch& stretch) {
  const auto& place = lane_.place();
  HORO_TRY(stretch.block, lane_.gpu().result(stretch.elements * size_of(bucket_.like.dtype)));
  HORO_TRY_STATUS(pack(stretch));
  HORO_TRY_STATUS(record(stretch.scatter.ready, lane_.packing()));
  Bucket bucket{.like = like_of(Kind::reducescatter), .parts = {}};
  for (int r = 0; r < place.hierarchy.local_ranks; ++r)
    bucket.rows.push_back(place.slice_of(stretch.elements, r));
  return start_step(stretch.scatter, std::move(bucket), stretch.block->memory(), stretch.elements,
                    slice_of(stretch));
}

Status ByHostsBucket::gather(Stretch& stretch) {
  const auto& place = lane_.place();
  auto& ready = stretch.gather.ready;
  ready = stretch.scatter.finished;
  if (stretch.own != 0) {
    auto* const stream = staging_.first().to_device;
    stretch.timer = timer_of(lane_.gpu(), bucket_.outcome);
    stretch.timer.enter(DevicePhase::to_device, stream);
    stretch.stray = true;
    HORO_TRY_STATUS(device().copy(slice_of(stretch), stretch.slot->memory,
                                  stretch.own * size_of(bucket_.like.dtype), stream));
    stretch.timer.leave();
    HORO_TRY_STATUS(record(ready, stream));
    stretch.copied = ready;
    stretch.stray = false;
  }
  Bucket bucket{.like = like_of(Kind::allgather), .parts = {}};
  for (int r = 0; r < place.hierarchy.local_ranks; ++r)
    bucket.rows.push_back(place.slice_of(stretch.elements, r));
  return start_step(stretch.gather, std::move(bucket), slice_of(stretch), stretch.own,
                    stretch.block->memory());
}

/// The next operation in the order that all ranks of the host keep, if it can start.
Result<bool> ByHostsBucket::start_next() {
  if (scattered_ < std::min(stretches_.size(), gathered_ + kByHostsDepth)) {
    HORO_TRY_STATUS(scatter(stretches_[scattered_]));
    ++scattered_;
    return true;
  }
  if (gathered_ == arrived_) return false;
  HORO_TRY_STATUS(gather(stretches_[gathered_]));
  ++gathered_;
  return true;
}

// -- To the host and back -------------------------------------------------------------------------

Result<bool> ByHostsBucket::fetch_next() {
  if (fetched_ == scattered_) return false;
  auto& stretch = stretches_[fetched_];
  if (!stretch.scatter.outcome.launched) return false;
  const auto bytes = stretch.own * size_of(bucket_.like.dtype);
  if (bytes != 0) {
    HORO_TRY(stretch.slot, lane_.slots().take(&lane_.gpu(), bytes));
    if (stretch.slot == nullptr) return false;
    auto* const stream = staging_.first().to_host;
    HORO_TRY_STATUS(device().wait(stream, stretch.scatter.finished.get()));
    stretch.timer = timer_of(lane_.gpu(), bucket_.outcome);
    stretch.timer.enter(DevicePhase::to_host, stream);
    stretch.stray = true;
    HORO_TRY_STATUS(device().copy(stretch.slot->memory, slice_of(stretch), bytes, stream));
    stretch.timer.leave();
    HORO_TRY_STATUS(record(stretch.copied, stream));
    stretch.stray = false;
  }
  ++fetched_;
  return true;
}

/// The stretch's last copies have ended, if it has any.
Result<bool> ByHostsBucket::passed(Stretch& stretch) {
  if (stretch.copied == nullptr) return true;
  HORO_TRY(const bool done, device().done(stretch.copied.get()));
  if (!done) return false;
  read_times(stretch.timer, bucket_.outcome);
  stretch.timer = {};
  stretch.copied.reset();
  return true;
}

Result<bool> ByHostsBucket::look_at_fetched() {
  if (here_ == fetched_) return false;
  HORO_TRY(const bool here, passed(stretches_[here_]));
  if (here) ++here_;
  return here;
}

Status ByHostsBucket::unpack(Stretch& stretch) {
  auto* const stream = staging_.first().to_device;
  HORO_TRY_STATUS(device().wait(stream, stretch.gather.finished.get()));
  for (const auto& cut : stretch.cuts) {
    for (const auto& event : bucket_.parts[cut.part].before)
      HORO_TRY_STATUS(device().wait(stream, event.get()));
  }
  const auto parts = spans(stretch, true);
  const auto dtype = bucket_.like.dtype;
  if (device().packer() != nullptr) {
    HORO_TRY_STATUS(device().packer()->unpack(parts, stretch.block->memory(),
                                              {.from = dtype, .to = dtype}, stream));
  } else {
    const auto* from = static_cast<const std::byte*>(stretch.block->memory());
    for (const auto& part : parts) {
      const auto bytes = part.elements * size_of(dtype);
      HORO_TRY_STATUS(device().copy(part.memory, from, bytes, stream));
      from += bytes;
    }
  }
  HORO_TRY_STATUS(record(stretch.copied, stream));
  stretch.block->note_use(stretch.copied);
  return {};
}

Result<bool> ByHostsBucket::unpack_next() {
  if (unpacked_ == gathered_ || !stretches_[unpacked_].gather.outcome.launched) return false;
  HORO_TRY_STATUS(unpack(stretches_[unpacked_]));
  ++unpacked_;
  return true;
}

Result<bool> ByHostsBucket::look_at_unpacked() {
  if (done_ == unpacked_) return false;
  auto& stretch = stretches_[done_];
  HORO_TRY(const bool ended, passed(stretch));
  if (!ended) return false;
  give_back(stretch);
  ++done_;
  return true;
}

/// All work is on the device: a stream that waits for the event comes after it.
Status ByHostsBucket::launch() {
  launched_ = true;
  auto* const outcome = bucket_.outcome;
  if (outcome == nullptr || outcome->finished == nullptr) return {};
  HORO_TRY_STATUS(device().record(outcome->finished, staging_.first().to_device));
  outcome->launched = true;
  return {};
}

Result<bool> ByHostsBucket::fill() {
  bool any = false;
  for (bool moved = may_start_; moved; any = any || moved) {
    HORO_TRY(const bool started, start_next());
    HORO_TRY(const bool fetched, fetch_next());
    HORO_TRY(const bool here, look_at_fetched());
    HORO_TRY(const bool unpacked, unpack_next());
    HORO_TRY(const bool ended, look_at_unpacked());
    moved = started || fetched || here || unpacked || ended;
  }
  if (launched_ || unpacked_ != stretches_.size()) return any;
  HORO_TRY_STATUS(launch());
  return true;
}

// -- Between the hosts ----------------------------------------------------------------------------

/// The exchanges start in one order on all ranks: the first one of the next stretch comes before
/// the second one of this stretch.
Result<bool> ByHostsBucket::feed(Backend& host) {
  while (shared_ < stretches_.size()) {
    if (sent_ < std::min(stretches_.size(), shared_ + 2)) {
      if (sent_ == here_) return false;
      const auto& stretch = stretches_[sent_];
      auto* const memory = stretch.slot == nullptr ? nullptr : stretch.slot->memory;
      HORO_TRY_STATUS(lane_.sum(sent_).start({.like = bucket_.like,
                                              .set_size = lane_.place().hierarchy.ranks,
                                              .memory = memory,
                                              .elements = stretch.own,
                                              .of = stretch.elements,
                                              .small_message = bucket_.small_message},
                                             host));
      ++sent_;
      continue;
    }
    if (!lane_.sum(shared_).has_shares(host)) return false;
    HORO_TRY_STATUS(lane_.sum(shared_).share(host));
    ++shared_;
  }
  return true;
}

bool ByHostsBucket::drain(const Backend& host) {
  const auto before = arrived_;
  while (arrived_ < shared_ && lane_.sum(arrived_).done(host)) ++arrived_;
  return arrived_ != before;
}

bool ByHostsBucket::done() const {
  if (!launched_ || done_ != stretches_.size()) return false;
  return stretches_.empty() || stretches_.back().gather.ticket <= local_.completed();
}

// -- The end --------------------------------------------------------------------------------------

void ByHostsBucket::give_back(Stretch& stretch) {
  stretch.block.reset();
  if (stretch.slot != nullptr) PinnedSlots::put(*std::exchange(stretch.slot, nullptr));
}

bool ByHostsBucket::abandon() {
  for (const auto& stretch : stretches_) {
    if (stretch.block == nullptr) continue;
    for (const auto& event : {stretch.copied, stretch.scatter.finished, stretch.gather.finished}) {
      if (event == nullptr) continue;
      const auto done = device().done(event.get());
      if (done && !*done) return false;
    }
  }
  return true;
}

bool ByHostsBucket::will_end(const Step& step) const {
  return step.ticket == 0 || step.ticket <= local_.completed() || step.outcome.abandoned;
}

/// Puts `end` behind all that the device still has of this bucket.
Status ByHostsBucket::mark_end(const SharedEvent& end) {
  auto* const last = staging_.first().to_device;
  for (const auto& stretch : stretches_) {
    for (const auto* const step : {&stretch.scatter, &stretch.gather}) {
      if (step->ticket != 0) HORO_TRY_STATUS(device().wait(last, step->finished.get()));
    }
  }
  // One behind the other, because a record replaces the one before.
  HORO_TRY_STATUS(device().record(end.get(), lane_.packing()));
  HORO_TRY_STATUS(device().wait(staging_.first().to_host, end.get()));
  HORO_TRY_STATUS(device().record(end.get(), staging_.first().to_host));
  HORO_TRY_STATUS(device().wait(last, end.get()));
  auto* const outcome = bucket_.outcome;
  if (outcome != nullptr && outcome->finished != nullptr) {
    if (!outcome->launched) HORO_TRY_STATUS(device().record(outcome->finished, last));
    outcome->abandoned = true;
  }
  return device().record(end.get(), last);
}

void ByHostsBucket::forget() {
  const bool ends = std::all_of(stretches_.begin(), stretches_.end(), [this](const Stretch& one) {
    return will_end(one.scatter) && will_end(one.gather);
  });
  const auto end = lane_.gpu().event();
  const bool marked = ends && end && mark_end(*end).has_value();
  for (auto& stretch : stretches_) {
    if (stretch.slot != nullptr) {
      const auto left =
          stretch.copied == nullptr ? Result<bool>(true) : device().done(stretch.copied.get());
      if (!stretch.stray && left && *left) {
        PinnedSlots::put(*stretch.slot);
      } else {
        PinnedSlots::abandon(*stretch.slot);
      }
      stretch.slot = nullptr;
    }
    if (stretch.block == nullptr) continue;
    if (marked) {
      stretch.block->note_use(*end);
    } else {
      static_cast<void>(new SharedResult(stretch.block));  // Nobody uses this memory again.
    }
    stretch.block.reset();
  }
}

}  // namespace horo::runtime
