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

inline void record_submitted(SetId set, TensorId id) {
  if (auto* const recorder = timeline::Recorder::current(); recorder != nullptr)
    recorder->submit(set, id);
}

inline timeline::Waiting waiting_for(const Operation& operation) {
  return {operation.set, operation.tensor};
}

/// Ends the range of an entry, where it has one.
void end_range(std::size_t set, std::uint64_t entry);

inline void record_ended(std::size_t set, std::uint64_t entry) {
  end_range(set, entry);
  if (auto* const recorder = timeline::Recorder::current(); recorder != nullptr)
    recorder->end(static_cast<std::uint16_t>(set), entry);
}

void record_begun(std::size_t set, std::uint64_t number, const Entry& entry, const Bucket& bucket,
                  const Backend& backend);
/// `before`: as of the last call; it is `now` afterwards.
void record_copied(std::size_t set, std::uint64_t entry, const CopyTimes& now, CopyTimes& before);
void record_declared(std::size_t set, TensorId id, std::string_view name,
                     const Signature& signature);
void record_stalls(std::size_t lines);
/// The ranks had submitted different things under this name.
void record_mismatch(std::size_t set, TensorId id);
void record_lost(Rank rank);

}  // namespace horo::runtime
