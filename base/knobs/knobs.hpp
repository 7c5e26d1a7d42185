// SPDX-License-Identifier: Apache-2.0
// The rows of the knobs that ranks read. Those that only the launcher reads are in
// launcher_knobs.hpp and mpi_knobs.hpp, those of the timeline in timeline_knobs.hpp. Each row must
// also be in the list of knob_table.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/knobs/choices.hpp"
#include "base/knobs/knob.hpp"
#include "base/knobs/number_list.hpp"
#include "base/log.hpp"

namespace horo::knobs {

using namespace horo::literals;        // NOLINT(google-build-using-namespace): only literals
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

inline constexpr int kIntMax = std::numeric_limits<int>::max();

// --- Fusion and agreement ---

inline constexpr Knob<Bytes> kFusionThreshold{
    .text = {.key = "fusion.threshold",
             .group = kAgreement,
             .help = "largest fused buffer; 0 sends every tensor alone",
             .unit = "bytes",
             .flags = {Spelling{.name = "fusion-threshold-mb", .scale = 1048576}},
             .variable = {.name = "HOROVOD_FUSION_THRESHOLD"},
             .config = {.name = "params.fusion_threshold_mb", .scale = 1048576}},
    .fallback = 64_MiB,
    .least = Bytes{0},
    .most = 1_GiB,
    .tunable = true};

inline constexpr Knob<bool> kGroupFusion{
    .text = {.key = "group.fusion",
             .group = kAgreement,
             .help = "members of a group may share a buffer with other tensors; false: only with "
                     "each other",
             .variable = {.name = "HOROVOD_DISABLE_GROUP_FUSION", .inverted = true}},
    .fallback = true};

inline constexpr Knob<Duration> kCycleTime{
    .text =
        {.key = "cycle.time",
         .group = kAgreement,
         .help =
             "how long an idle runtime waits for more tensors before it starts; 0 starts at once",
         .unit = "ms",
         .flags = {Spelling{.name = "cycle-time-ms"}},
         .variable = {.name = "HOROVOD_CYCLE_TIME"},
         .config = {.name = "params.cycle_time_ms"}},
    .fallback = 0ms,
    .least = 0ms,
    .most = 1000ms,
    .tunable = true};

inline constexpr Knob<int> kCacheCapacity{
    .text = {.key = "cache.capacity",
             .group = kAgreement,
             .help = "names of tensors that a process set remembers; a new name replaces one that "
                     "is not in use; 0, and a smaller number under a name of Horovod's, count as "
                     "the default",
             .unit = "tensors",
             .zero_is_default = true,
             .variable = {.name = "HOROVOD_CACHE_CAPACITY", .only_raises = true},
             .config = {.name = "params.cache_capacity", .only_raises = true}},
    .fallback = 8192,
    .least = 16,
    .most = 1048576};

inline constexpr Knob<Duration> kWakeDelay{
    .text = {.key = "wake.delay",
             .group = kAgreement,
             .help =
                 "how long a submitted tensor may wait for others before it wakes the runtime's "
                 "thread, unless there is a full buffer of them; from 200 ms on a full buffer "
                 "wakes it no earlier. The default is 200 ms where the ranks of a host need all "
                 "its cores",
             .unit = "us"},
    .fallback = 50us,
    .least = 0us,
    .most = 1s,
    .tunable = true};

inline constexpr Knob<Bytes> kSmallMessage{
    .text = {.key = "small.message",
             .group = kAgreement,
             .help = "between hosts, one message more costs as much time as so many bytes: sums "
                     "of at most so many, over all ranks, go from every rank to every other at "
                     "once, which takes one way instead of two; more over longer links",
             .unit = "bytes"},
    .fallback = 64_KiB,
    .least = Bytes{0},
    .most = 64_MiB,
    .tunable = true};

inline constexpr Knob<OptionalDuration> kSpinTime{
    .text = {.key = "spin.time",
             .group = kAgreement,
             .help = "how long a waiting thread spins before it sleeps; auto spins longer while "
                     "every rank has a core of its own",
             .unit = "us",
             .none = "auto"},
    .fallback = std::nullopt,
    .least = 0us,
    .most = 1s};

inline constexpr Knob<bool> kDeterministic{
    .text = {.key = "deterministic",
             .group = kAgreement,
             .help = "same bits from run to run also between hosts; on one host the bits are "
                     "always the same, whatever is fused"}};

inline constexpr Knob<bool> kHierarchicalAllreduce{
    .text = {.key = "hierarchical.allreduce",
             .group = kAgreement,
             .help = "reduce within each host first, then each part of the result between "
                     "hosts; false: one ring over all ranks",
             .variable = {.name = "HOROVOD_HIERARCHICAL_ALLREDUCE"},
             .config = {.name = "params.hierarchical_allreduce"}},
    .fallback = true};

inline constexpr Knob<bool> kHierarchicalAllgather{
    .text = {.key = "hierarchical.allgather",
             .group = kAgreement,
             .help = "large tensors enter and leave each host once; always so, unless --map-by "
                     "host separates the ranks of a host",
             .inert =
                 "between hosts they always go around a ring of all ranks, in which they do so",
             .variable = {.name = "HOROVOD_HIERARCHICAL_ALLGATHER"},
             .config = {.name = "params.hierarchical_allgather"}},
    .fallback = true};

inline constexpr Knob<bool> kTorusAllreduce{
    .text = {.key = "torus.allreduce",
             .group = kAgreement,
             .help = "all local ranks reduce their slice between hosts in parallel; part of "
                     "hierarchical.allreduce, and on whenever that is",
             .inert = "hierarchical.allreduce decides, and includes it",
             .variable = {.name = "HOROVOD_TORUS_ALLREDUCE"},
             .config = {.name = "params.torus_allreduce"}},
    .fallback = true};

inline constexpr Knob<WireDTypeChoice> kWireDType{
    .text = {.key = "wire.dtype",
             .group = kAgreement,
             .help =
                 "type in which elements of float32 sums and averages travel between hosts, for "
                 "tensors of 1024 elements and more that ask for nothing else",
             .choices = {"none", "bfloat16", "float16"}},
    .fallback = WireDTypeChoice::none,
    .least = WireDTypeChoice::none,
    .most = WireDTypeChoice::float16};

inline constexpr Knob<bool> kWireErrorFeedback{
    .text = {.key = "wire.error.feedback",
             .group = kAgreement,
             .help = "keep what the rounding to wire.dtype leaves of each element, and add it to "
                     "the tensor's next sum; takes up to 8 bytes per element"}};

inline constexpr Knob<int> kTreeRadix{
    .text = {.key = "tree.radix",
             .group = kAgreement,
             .help = "hosts that report to the same host in the tree of agreement between hosts",
             .unit = "hosts"},
    .fallback = 16,
    .least = 1,
    .most = 60};

// --- Shared memory ---

inline constexpr Knob<Bytes> kShmChunk{
    .text = {.key = "shm.chunk",
             .group = kMemory,
             .help = "size of the pieces in which ordinary memory moves between the ranks of a "
                     "host; should exceed a core's private cache, so that a peer finds the piece "
                     "in the shared cache",
             .unit = "bytes"},
    .fallback = 512_KiB,
    .least = 4_KiB,
    .most = 4_MiB};

inline constexpr Knob<int> kShmRing{.text = {.key = "shm.ring",
                                             .group = kMemory,
                                             .help = "chunks in a rank's staging ring",
                                             .unit = "chunks"},
                                    .fallback = 4,
                                    .least = 2,
                                    .most = 64};

inline constexpr Knob<Bytes> kArenaSize{
    .text = {.key = "arena.size",
             .group = kMemory,
             .help = "memory of one rank for horo_alloc; only address space until it is used",
             .unit = "bytes"},
    .fallback = 16_GiB,
    .least = 1_MiB,
    .most = 4096_GiB};

// --- Times and failures ---

inline constexpr Knob<Duration> kStartTimeout{
    .text = {.key = "start.timeout",
             .group = kTimes,
             .help = "how long all ranks may take to start and to find each other; 0: the default",
             .unit = "s",
             .zero_is_default = true,
             .variable = {.name = "HOROVOD_START_TIMEOUT"}},
    .fallback = 30s,
    .least = 1ms,
    .most = 24h};

inline constexpr Knob<Duration> kHeartbeatTimeout{
    .text = {.key = "heartbeat.timeout",
             .group = kTimes,
             .help = "a host that sends nothing for this long counts as lost",
             .unit = "s"},
    .fallback = 5s,
    .least = 100ms,
    .most = 1h};

/// How much longer the ranks of a host wait before they kill one themselves: its agent comes first.
inline constexpr Duration kAfterAgent = 200ms;

inline constexpr Knob<Duration> kReleaseTimeout{
    .text = {.key = "release.timeout",
             .group = kTimes,
             .help = "how long a rank may use its peers' memory after another rank was lost; then "
                     "it is killed",
             .unit = "s"},
    .fallback = 1s,
    .least = 100ms,
    .most = 1h};

// --- Logging ---

inline constexpr Knob<log::Level> kLogLevel{
    .text = {.key = "log.level",
             .group = kLogs,
             .help = "lowest level of log lines to write",
             .choices = {"trace", "debug", "info", "warning", "error", "fatal"},
             .variable = {.name = "HOROVOD_LOG_LEVEL"},
             .config = {.name = "logging.level"}},
    .fallback = log::Level::warning,
    .least = log::Level::trace,
    .most = log::Level::fatal};

inline constexpr Knob<bool> kLogTimestamp{
    .text = {.key = "log.timestamp",
             .group = kLogs,
             .help = "put the time in front of each log line",
             .flags = {Spelling{.name = "log-with-timestamp"},
                       Spelling{.name = "log-without-timestamp", .inverted = true},
                       Spelling{.name = "log-hide-timestamp", .inverted = true}},
             .variable = {.name = "HOROVOD_LOG_HIDE_TIME", .inverted = true},
             .config = {.name = "logging.with_timestamp"}}};

// --- Autotuning ---

inline constexpr Knob<bool> kAutotune{
    .text = {.key = "autotune",
             .group = kAutotuning,
             .help = "search for the best tunable knobs while training; those that are set stay as "
                     "they are",
             .variable = {.name = "HOROVOD_AUTOTUNE"},
             .config = {.name = "autotune.enabled"}}};

inline constexpr Knob<std::string_view> kAutotuneLogFile{
    .text = {.key = "autotune.log.file",
             .group = kAutotuning,
             .help = "file for the tried points and their scores, as comma-separated values",
             .unit = "path",
             .variable = {.name = "HOROVOD_AUTOTUNE_LOG"}},
    .fallback = ""};

inline constexpr Knob<int> kAutotuneWarmupSamples{
    .text = {.key = "autotune.warmup.samples",
             .group = kAutotuning,
             .help = "samples to discard at the beginning",
             .unit = "samples",
             .variable = {.name = "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"}},
    .fallback = 3,
    .least = 0,
    .most = kIntMax};

inline constexpr Knob<int> kAutotuneStepsPerSample{
    .text = {.key = "autotune.steps.per.sample",
             .group = kAutotuning,
             .help = "steps that make one sample at least; where steps differ much, a sample has "
                     "up to eight times as many",
             .unit = "steps",
             .variable = {.name = "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"}},
    .fallback = 10,
    .least = 0,
    .most = kIntMax};

inline constexpr Knob<int> kAutotuneMaxSamples{
    .text = {.key = "autotune.bayes.opt.max.samples",
             .group = kAutotuning,
             .help = "samples after which the search ends; then the best point and the default "
                     "run in turns, for at most 22 more",
             .unit = "samples",
             .variable = {.name = "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"}},
    .fallback = 20,
    .least = 0,
    .most = kIntMax};

inline constexpr Knob<std::string_view> kAutotuneMemory{
    .text = {.key = "autotune.memory",
             .group = kAutotuning,
             .help = "folder that keeps what searches have found, so that the next job with the "
                     "same tensors and ranks starts from it; off: nothing is kept or used. The "
                     "default is horo in $XDG_STATE_HOME, or in ~/.local/state",
             .unit = "path"},
    .fallback = ""};

inline constexpr Knob<Duration> kAutotuneWatchTime{
    .text = {.key = "autotune.watch.time",
             .group = kAutotuning,
             .help = "when the throughput has been lower for so long after a search, another, "
                     "shorter search begins; 0: never",
             .unit = "s"},
    .fallback = 60s,
    .least = 0s,
    .most = 24h};

inline constexpr Knob<double> kAutotuneNoise{
    .text = {.key = "autotune.gaussian.process.noise",
             .group = kAutotuning,
             .help = "expected share of noise in the scores",
             .inert = "the autotuner measures the noise",
             .variable = {.name = "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"}},
    .fallback = 0.8,
    .least = 0,
    .most = 1};

// --- Stall check ---

inline constexpr Knob<bool> kStallCheck{
    .text = {.key = "stall.check",
             .group = kStalls,
             .help = "find tensors that do not complete, and name the rank that causes it",
             .variable = {.name = "HOROVOD_STALL_CHECK_DISABLE", .inverted = true},
             .config = {.name = "stall_check.enabled"}},
    .fallback = true,
    .least = false,
    .most = true};

inline constexpr Knob<Duration> kStallWarningTime{
    .text = {.key = "stall.warning.time",
             .group = kStalls,
             .help = "how long a tensor may wait for a rank before the warning; the warning is "
                     "repeated after twice that time, and so on",
             .unit = "s",
             .flags = {Spelling{.name = "stall-check-warning-time-seconds"}},
             .variable = {.name = "HOROVOD_STALL_CHECK_TIME_SECONDS"},
             .config = {.name = "stall_check.warning_time_seconds"}},
    .fallback = 60s,
    .least = 0s,
    .most = 2400h};

inline constexpr Knob<OptionalDuration> kStallShutdownTime{
    .text = {.key = "stall.shutdown.time",
             .group = kStalls,
             .help = "how long a tensor may wait for a rank before the job ends",
             .unit = "s",
             .none = "never",
             .zero_is_none = true,
             .flags = {Spelling{.name = "stall-check-shutdown-time-seconds"}},
             .variable = {.name = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"},
             .config = {.name = "stall_check.shutdown_time_seconds"}},
    .fallback = std::nullopt,
    .least = 1ms,
    .most = 2400h};

// --- Libraries ---

inline constexpr Knob<CpuOperations> kCpuOperations{
    .text = {.key = "cpu.operations",
             .group = kLibraries,
             .help = "library that moves tensors in host memory; auto: shm on one host; between "
                     "hosts mpi under mpirun, otherwise tcp",
             .choices = {"auto", "shm", "tcp", "gloo", "mpi"},
             .variable = {.name = "HOROVOD_CPU_OPERATIONS"}},
    .fallback = CpuOperations::automatic,
    .least = CpuOperations::automatic,
    .most = CpuOperations::mpi};

inline constexpr Knob<bool> kEncrypt{
    .text = {.key = "encrypt",
             .group = kLibraries,
             .help = "encrypt the tensors that cross hosts; needs tcp, and OpenSSL's libcrypto on "
                     "every host"}};

inline constexpr Knob<std::string_view> kGlooInterface{
    .text =
        {.key = "gloo.iface",
         .group = kLibraries,
         .help =
             "network interface for tcp and gloo; empty: one by which the hosts reach each other; "
             "tcp uses several, separated by commas, at once",
         .variable = {.name = "HOROVOD_GLOO_IFACE"}},
    .fallback = ""};

inline constexpr Knob<Duration> kGlooTimeout{
    .text = {.key = "gloo.timeout",
             .group = kLibraries,
             .help = "how long tcp and gloo wait for a peer that is silent",
             .unit = "s",
             .flags = {Spelling{.name = "gloo-timeout-seconds"}},
             .variable = {.name = "HOROVOD_GLOO_TIMEOUT_SECONDS"},
             .config = {.name = "library_options.gloo_timeout_seconds"}},
    .fallback = 30s,
    .least = 0s,
    .most = 24h};

inline constexpr Knob<bool> kMpiThreadsDisable{
    .text = {.key = "mpi.threads.disable",
             .group = kLibraries,
             .help = "initialise MPI without thread support",
             .variable = {.name = "HOROVOD_MPI_THREADS_DISABLE"},
             .config = {.name = "library_options.mpi_threads_disable"}}};

inline constexpr Knob<int> kNumNcclStreams{
    .text = {.key = "num.nccl.streams",
             .group = kLibraries,
             .help =
                 "streams of a process set for NCCL's operations, each with a communicator; 0: one",
             .unit = "streams",
             .variable = {.name = "HOROVOD_NUM_NCCL_STREAMS"},
             .config = {.name = "library_options.num_nccl_streams"}},
    .fallback = 1,
    .least = 0,
    .most = 64};

inline constexpr Knob<std::string_view> kThreadAffinity{
    .text = {.key = "thread.affinity",
             .group = kLibraries,
             .help = "core on which each local rank's runtime thread runs: at least as many "
                     "numbers as the host has ranks, separated by commas",
             .unit = "cores",
             .has_form = &is_number_list,
             .form = "core numbers separated by commas",
             .variable = {.name = "HOROVOD_THREAD_AFFINITY"},
             .config = {.name = "library_options.thread_affinity"}},
    .fallback = ""};

}  // namespace horo::knobs
