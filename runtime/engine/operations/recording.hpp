// SPDX-License-Identifier: Apache-2.0
// Records of the runtime for the timeline. While the timeline is off a record costs one load.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/worker_env.hpp"
#include "runtime/board/board.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/device/device_clock.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/tensor/signature.hpp"
#include "runtime/tensor/tuning.hpp"
#include "timeline/record/record.hpp"
#include "timeline/record/recorder.hpp"

namespace horo::runtime {

/// Why a bucket takes its path. Thread: any.
using WhyPath = std::function<timeline::PathReason(const Bucket&)>;

/// In place of a file's name: the program starts the trace.
inline constexpr std::string_view kNoTraceYet = "DYNAMIC";

/// The knobs of the timeline.
struct RecordingOptions {
  bool recorder = false;  ///< Keep the last records in memory.
  Bytes memory{std::uint64_t{4} << 20U};
  Duration keep{};  ///< Save records up to this long before the last one; zero: all in `memory`.
  std::uint32_t names = 8192;
  std::string trace;  ///< File of the Chrome trace; empty, kNoTraceYet: none.
  bool mark_cycles = false;
  bool all_ranks = false;
  bool nvtx = false;  ///< Ranges for NVIDIA's profilers.
  Bytes trace_limit{std::uint64_t{1} << 30U};
};

/// Begins to record as `identity`. A part that fails to start is left out and logged: the job runs
/// without it. Thread: one at a time.
void start_recording(const RecordingOptions& options, const WorkerIdentity& identity);
void stop_recording();

/// Writes a Chrome trace to `path` from now on, on rank 0 only. A trace to another file ends; one
/// to the same file goes on. Thread: one at a time. Fails: as timeline::Trace.
Status start_trace(const std::string& path, bool mark_cycles);
void stop_trace();

// -- On the hot path. Thread: any -----------------------------------------------------------------

/// `ticks`: the time now, of timeline/record/ticks.hpp.
inline void record_submitted(std::uint16_t set, TensorId id, std::uint64_t ticks) {
  if (auto* const recorder = timeline::Recorder::current(); recorder != nullptr) [[likely]]
    recorder->submit(set, id, ticks);
}

inline timeline::Waiting waiting_for(const Operation& operation) {
  return {operation.recorded_set, operation.tensor};
}

/// Ends the entry's range for NVIDIA's profilers, if it has one.
void end_range(std::uint16_t set, std::uint64_t entry);

inline void record_ended(std::uint16_t set, std::uint64_t entry) {
  end_range(set, entry);
  if (auto* const recorder = timeline::Recorder::current(); recorder != nullptr)
    recorder->end(set, entry);
}

/// The backend that moves a bucket, and why the bucket takes its path.
struct BucketMover {
  timeline::Mover mover = timeline::Mover::none;
  timeline::PathReason reason = timeline::PathReason::none;
};

void record_begun(std::uint16_t set, std::uint64_t number, const Entry& entry, const Bucket& bucket,
                  const BucketMover& by);
/// `before`: the times at the last call; set to `now`.
void record_copied(std::uint16_t set, std::uint64_t entry, const CopyTimes& now, CopyTimes& before);
/// When the rank's device worked for the entry, as far as that is known.
void record_device_times(std::uint16_t set, std::uint64_t entry, const DeviceTimes& times);
void record_declared(std::uint16_t set, TensorId id, std::string_view name,
                     const Signature& signature);
void record_stalls(std::size_t lines);
/// The ranks had submitted different tensors under this name.
void record_mismatch(std::uint16_t set, TensorId id);
void record_member(std::uint16_t set);
void record_lost(Rank rank);

/// The rank has entered a generation of an elastic job.
void record_entered(const timeline::RecordedGeneration& generation);
/// The rank changes its tuning between two entries.
void record_tuned(std::uint16_t set, const Tuning& before, const Tuning& after);

}  // namespace horo::runtime
