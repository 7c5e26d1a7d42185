// SPDX-License-Identifier: Apache-2.0
// What the runtime tells the timeline, a line at each place; nothing but a load while it is off.
#pragma once

#include <string>
#include <string_view>

#include "base/worker_env.hpp"
#include "runtime/backends/backend.hpp"
#include "runtime/coordinator/board.hpp"
#include "runtime/operation.hpp"
#include "runtime/signature.hpp"
#include "timeline/recorder.hpp"

namespace horo::runtime {

/// What the knobs say of the timeline.
struct RecordingOptions {
  bool recorder = false;  ///< Keep the last moments in memory.
  Bytes memory{std::uint64_t{4} << 20U};
  Duration keep{};  ///< Before the last record, of what is saved; zero: all of `memory`.
  std::uint32_t names = 8192;
  std::string trace;  ///< File of the Chrome trace; empty, DYNAMIC: none yet.
  bool mark_cycles = false;
  bool all_ranks = false;
  bool nvtx = false;  ///< Ranges for NVIDIA's profilers.
  Bytes trace_limit{std::uint64_t{1} << 30U};
};

/// Begins to record as `identity`. What cannot be had is left out: a job runs without as well.
/// Thread: one at a time.
void start_recording(const RecordingOptions& options, const WorkerIdentity& identity);
void stop_recording();

/// Writes a Chrome trace to `path` from now on, on rank 0; on others nothing. The trace that is
/// being written ends; the same file goes on. Thread: one at a time. Fails: as timeline::Trace.
Status start_trace(const std::string& path, bool mark_cycles);
void stop_trace();

// -- From the hot path; Thread: any
// ----------------------------------------------------------------

/// `ticks`: of timeline/ticks.hpp, as the caller has just read them.
inline void record_submitted(std::uint16_t set, TensorId id, std::uint64_t ticks) {
  if (auto* const recorder = timeline::Recorder::current(); recorder != nullptr) [[likely]]
    recorder->submit(set, id, ticks);
}

inline timeline::Waiting waiting_for(const Operation& operation) {
  return {operation.recorded_set, operation.tensor};
}

/// Ends the range of an entry, where it has one.
void end_range(std::uint16_t set, std::uint64_t entry);

inline void record_ended(std::uint16_t set, std::uint64_t entry) {
  end_range(set, entry);
  if (auto* const recorder = timeline::Recorder::current(); recorder != nullptr)
    recorder->end(set, entry);
}

void record_begun(std::uint16_t set, std::uint64_t number, const Entry& entry, const Bucket& bucket,
                  const Backend& backend);
/// `before`: as of the last call; it is `now` afterwards.
void record_copied(std::uint16_t set, std::uint64_t entry, const CopyTimes& now, CopyTimes& before);
void record_declared(std::uint16_t set, TensorId id, std::string_view name,
                     const Signature& signature);
void record_stalls(std::size_t lines);
/// The ranks had submitted different things under this name.
void record_mismatch(std::uint16_t set, TensorId id);
void record_member(std::uint16_t set);
void record_lost(Rank rank);

}  // namespace horo::runtime
