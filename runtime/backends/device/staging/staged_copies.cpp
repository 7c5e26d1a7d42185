// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/staging/staged_copies.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace horo::runtime {

using timeline::DevicePhase;

namespace {

constexpr int kMostTries = 100;

}  // namespace

const StagingStreams* streams_of(const Part& part, const StagingLane& lane) {
  return part.memory == MemoryKind::device ? lane.of(part.device) : nullptr;
}

void StagedCopies::note(const Error& error, const Copies& copies) {
  if (status_) status_ = Failure(copies.on->gpu->named(error));
}

void StagedCopies::list(const StagedPiece& piece, Direction direction) {
  for (const auto& run : piece.runs) {
    const auto* const streams = streams_of(part_of(run), *lane_);
    const bool listed = std::any_of(copies_.begin(), copies_.end(),
                                    [streams](const Copies& c) { return c.on == streams; });
    if (streams == nullptr || listed) continue;
    copies_.push_back({.on = streams,
                       .stream = streams->*direction,
                       .timer = timer_of(*streams->gpu, bucket_->outcome)});
  }
}

bool StagedCopies::is_on(const StagedRun& run, const Copies& copies) const {
  return streams_of(part_of(run), *lane_) == copies.on;
}

// -- To the host ----------------------------------------------------------------------------------

Status StagedCopies::await_parts(const StagedPiece& piece, const Copies& copies) const {
  EventHandle last = nullptr;
  for (const auto& run : piece.runs) {
    if (!is_on(run, copies)) continue;
    auto* const ready = part_of(run).ready;
    if (ready != nullptr && ready != last)
      HORO_TRY_STATUS(copies.on->gpu->device().wait(copies.stream, ready));
    last = ready;
  }
  return {};
}

Status StagedCopies::copy_to_host(const StagedPiece& piece, std::byte* memory,
                                  Copies& copies) const {
  bool begun = false;
  for (const auto& run : piece.runs) {
    if (run.in_bytes == 0 || !is_on(run, copies)) continue;
    if (!std::exchange(begun, true)) copies.timer.enter(DevicePhase::to_host, copies.stream);
    const auto* const from =
        static_cast<const std::byte*>(part_of(run).in) + run.first * size_of(bucket_->like.dtype);
    HORO_TRY_STATUS(
        copies.on->gpu->device().copy(memory + run.in, from, run.in_bytes, copies.stream));
  }
  copies.timer.leave();
  return {};
}

void StagedCopies::start_to_host(const StagedPiece& piece, std::byte* memory) {
  list(piece, &StagingStreams::to_host);
  for (auto& copies : copies_) {
    auto started = await_parts(piece, copies);
    if (started) started = copy_to_host(piece, memory, copies);
    if (!started) note(started.error(), copies);
    mark(copies);
  }
}

// -- Back to the device ---------------------------------------------------------------------------

/// The memory of the results may be in use before these events.
Status StagedCopies::await_results(const StagedPiece& piece, const Copies& copies) const {
  for (const auto& run : piece.runs) {
    if (run.out_bytes == 0 || part_of(run).out == nullptr || !is_on(run, copies)) continue;
    for (const auto& event : part_of(run).before)
      HORO_TRY_STATUS(copies.on->gpu->device().wait(copies.stream, event.get()));
  }
  return {};
}

Status StagedCopies::copy_to_device(const StagedPiece& piece, const std::byte* memory,
                                    Copies& copies) const {
  bool begun = false;
  for (const auto& run : piece.runs) {
    auto* const out = static_cast<std::byte*>(part_of(run).out);
    if (run.out_bytes == 0 || out == nullptr || !is_on(run, copies)) continue;
    if (!std::exchange(begun, true)) copies.timer.enter(DevicePhase::to_device, copies.stream);
    HORO_TRY_STATUS(copies.on->gpu->device().copy(out + run.first * size_of(bucket_->like.dtype),
                                                  memory + run.out, run.out_bytes, copies.stream));
  }
  copies.timer.leave();
  return {};
}

void StagedCopies::start_to_device(const StagedPiece& piece, const std::byte* memory) {
  list(piece, &StagingStreams::to_device);
  for (auto& copies : copies_) {
    auto started = await_results(piece, copies);
    if (started) started = copy_to_device(piece, memory, copies);
    if (!started) note(started.error(), copies);
    mark(copies);
  }
}

// -- The end --------------------------------------------------------------------------------------

/// Has an event tell when the copies have ended.
void StagedCopies::mark(Copies& copies) {
  auto& gpu = *copies.on->gpu;
  auto event = gpu.event();
  const auto recorded =
      event ? gpu.device().record(event->get(), copies.stream) : Status(Failure(event.error()));
  if (recorded) {
    copies.event = std::move(*event);
    return;
  }
  note(recorded.error(), copies);
  ++copies.unmarked;
}

bool StagedCopies::have_ended(Copies& copies) {
  if (copies.event == nullptr) {
    if (copies.unmarked < kMostTries) {
      mark(copies);
      return false;
    }
    stray_ = true;  // Where even this fails for ever the device runs nothing any more.
    return true;
  }
  const auto done = copies.on->gpu->device().done(copies.event.get());
  if (done && !*done) return false;
  if (done) {
    read_times(copies.timer, bucket_->outcome);
  } else {
    note(done.error(), copies);
    stray_ = true;
  }
  return true;
}

bool StagedCopies::look() {
  for (auto copies = copies_.begin(); copies != copies_.end();)
    copies = have_ended(*copies) ? copies_.erase(copies) : copies + 1;
  return copies_.empty();
}

}  // namespace horo::runtime
