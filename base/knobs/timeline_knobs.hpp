// SPDX-License-Identifier: Apache-2.0
// The rows of the timeline's knobs; the others are in knobs.hpp.
#pragma once

#include <chrono>
#include <string_view>

#include "base/knobs/choices.hpp"
#include "base/knobs/knob.hpp"

namespace horo::knobs {

inline constexpr Knob<bool> kTimelineRecorder{
    .text = {.key = "timeline.recorder",
             .group = kTimelines,
             .help =
                 "keep the last moments of every rank in memory, and save them when the job fails"},
    .fallback = true,
    .least = false,
    .most = true};

inline constexpr Knob<Bytes> kTimelineMemory{
    .text = {.key = "timeline.memory",
             .group = kTimelines,
             .help = "memory for the last moments of a rank, 8 to 32 bytes per record; allocated "
                     "as it is used",
             .unit = "bytes"},
    .fallback = Bytes{std::uint64_t{4} << 20U},
    .least = Bytes{std::uint64_t{64} << 10U},
    .most = Bytes{std::uint64_t{32} << 20U}};

inline constexpr Knob<Duration> kTimelineSeconds{
    .text = {.key = "timeline.seconds",
             .group = kTimelines,
             .help = "duration of the last moments that are saved, counted back from a rank's last "
                     "record; 0: as far as the memory reaches",
             .unit = "s"},
    .fallback = std::chrono::seconds(0),
    .least = std::chrono::seconds(0),
    .most = std::chrono::hours(24)};

inline constexpr Knob<std::string_view> kTimelineDirectory{
    .text = {.key = "timeline.directory",
             .group = kTimelines,
             .help = "directory for the last moments of a failed job, on each host; by "
                     "default that of --output-filename, otherwise one in /tmp",
             .unit = "path",
             .reader = KnobReader::launcher},
    .fallback = ""};

inline constexpr Knob<std::string_view> kTimelineFilename{
    .text = {.key = "timeline.filename",
             .group = kTimelines,
             .help = "file for a trace of all operations in Chrome's JSON format, written by rank "
                     "0; DYNAMIC: no trace until the program asks for it",
             .unit = "path",
             .variable = {.name = "HOROVOD_TIMELINE"}},
    .fallback = ""};

inline constexpr Knob<bool> kTimelineMarkCycles{
    .text = {.key = "timeline.mark.cycles",
             .group = kTimelines,
             .help = "mark each log entry in the trace",
             .variable = {.name = "HOROVOD_TIMELINE_MARK_CYCLES"}}};

inline constexpr Knob<bool> kTimelineAllRanks{
    .text = {.key = "timeline.all.ranks",
             .group = kTimelines,
             .help = "show all ranks of rank 0's host in the trace, each as a separate thread"}};

inline constexpr Knob<bool> kTimelineNvtx{
    .text = {.key = "timeline.nvtx",
             .group = kTimelines,
             .help = "show operations to NVIDIA's profilers as NVTX ranges, by the profiler's "
                     "library that NVTX_INJECTION64_PATH names, or else by libnvToolsExt, if it is "
                     "installed",
             .variable = {.name = "HOROVOD_DISABLE_NVTX_RANGES", .inverted = true}},
    .fallback = true,
    .least = false,
    .most = true};

inline constexpr Knob<Bytes> kTimelineLimit{
    .text = {.key = "timeline.limit",
             .group = kTimelines,
             .help = "size at which the trace is renamed to FILE.1 and a new one begins",
             .unit = "bytes"},
    .fallback = Bytes{std::uint64_t{1} << 30U},
    .least = Bytes{std::uint64_t{64} << 10U},
    .most = Bytes{std::uint64_t{1} << 40U}};

}  // namespace horo::knobs
