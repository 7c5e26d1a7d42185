// SPDX-License-Identifier: Apache-2.0
// Converts the knobs in this process's environment to the options of a session.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <utility>

#include "base/knobs/controller.hpp"
#include "base/knobs/elastic_knobs.hpp"
#include "base/knobs/gpu_knobs.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/settings.hpp"
#include "base/knobs/timeline_knobs.hpp"
#include "base/knobs/variable_warnings.hpp"
#include "base/log.hpp"
#include "runtime/capi/capi_support.hpp"
#include "runtime/session/thread_core.hpp"

namespace horo::runtime::capi {

namespace {

/// The check takes microseconds; at shorter intervals it would cost noticeable time.
constexpr Duration kLeastWarning = std::chrono::milliseconds(10);

const char* environment_variable(const char* name) {
  return std::getenv(name);
}

Result<Settings> read_settings() {
  return Settings::from_environment(&environment_variable);
}

BoardParams read_board(const Settings& settings) {
  BoardParams board;
  board.capacity = std::bit_ceil(static_cast<std::uint32_t>(settings.get(knobs::kCacheCapacity)));
  board.ring_slots = static_cast<std::uint32_t>(settings.get(knobs::kShmRing));
  board.chunk_bytes = settings.get(knobs::kShmChunk).value() / 64 * 64;
  board.cores = static_cast<std::uint32_t>(std::max(1, get_nprocs()));
  board.arena_bytes = settings.get(knobs::kArenaSize).value() / 4096 * 4096;
  board.tuning.fusion_threshold = settings.get(knobs::kFusionThreshold).value();
  board.tuning.cycle_ns = static_cast<std::uint64_t>(settings.get(knobs::kCycleTime).count());
  board.tuning.wake_delay_ns = static_cast<std::uint64_t>(settings.get(knobs::kWakeDelay).count());
  board.tuning.small_message = settings.get(knobs::kSmallMessage).value();
  return board;
}

WireDType wire_of(WireDTypeChoice choice) {
  switch (choice) {
    case WireDTypeChoice::none:
      return WireDType::none;
    case WireDTypeChoice::bfloat16:
      return WireDType::bf16;
    case WireDTypeChoice::float16:
      return WireDType::f16;
  }
  return WireDType::none;
}

RecordingOptions read_recording(const Settings& settings, std::uint32_t capacity) {
  return {.recorder = settings.get(knobs::kTimelineRecorder),
          .memory = settings.get(knobs::kTimelineMemory),
          .keep = settings.get(knobs::kTimelineSeconds),
          .names = capacity,
          .trace = settings.get(knobs::kTimelineFilename),
          .mark_cycles = settings.get(knobs::kTimelineMarkCycles),
          .all_ranks = settings.get(knobs::kTimelineAllRanks),
          .nvtx = settings.get(knobs::kTimelineNvtx),
          .trace_limit = settings.get(knobs::kTimelineLimit)};
}

/// Empty: nothing is kept.
std::string read_memory(const Settings& settings) {
  const std::string folder(settings.get(knobs::kAutotuneMemory));
  if (folder == "off" || !settings.get(knobs::kAutotune)) return {};
  if (!folder.empty()) return folder;
  auto found = tuning::state_folder(&environment_variable);
  if (found) return std::move(*found);
  log::warn("runtime", "autotuning: no result is kept: {}", found.error().message);
  return {};
}

tuning::TunerOptions read_tuner(const Settings& settings) {
  const auto tunable = [&settings](const auto& knob) { return !settings.is_set(knob.text.key); };
  return {
      .on = settings.get(knobs::kAutotune),
      .tunable = {.fusion_threshold = tunable(knobs::kFusionThreshold),
                  .cycle_time = tunable(knobs::kCycleTime),
                  .wake_delay = tunable(knobs::kWakeDelay),
                  .small_message = tunable(knobs::kSmallMessage)},
      .steps_per_sample = settings.get(knobs::kAutotuneStepsPerSample),
      .course = {.warmup_samples = settings.get(knobs::kAutotuneWarmupSamples),
                 .most_samples = settings.get(knobs::kAutotuneMaxSamples)},
      .watch = {.least_seconds =
                    std::chrono::duration<double>(settings.get(knobs::kAutotuneWatchTime)).count()},
      .log_file = settings.get(knobs::kAutotuneLogFile),
      .hierarchical = settings.get(knobs::kHierarchicalAllreduce),
      .memory = read_memory(settings),
      .topology = {},
      .traits = {}};
}

/// The knob is on by default, for tensors in host memory.
ByHostsUse by_hosts_of(const Settings& settings) {
  if (!settings.get(knobs::kHierarchicalAllreduce)) return ByHostsUse::never;
  if (settings.get(knobs::kDeterministic)) return ByHostsUse::unordered;
  const bool asked = settings.is_set(knobs::kHierarchicalAllreduce.text.key);
  return asked ? ByHostsUse::preferred : ByHostsUse::fallback;
}

DeviceRules device_rules_of(const Settings& settings) {
  return {.driver = std::string(settings.get(knobs::kGpuDriver)),
          .nccl = std::string(settings.get(knobs::kGpuNccl)),
          .wanted = settings.get(knobs::kGpuOperations),
          .by_hosts = by_hosts_of(settings),
          .waits_by_stream = settings.get(knobs::kGpuAsyncCompletion)};
}

DeviceOptions read_devices(const Settings& settings, const DeviceRules& rules,
                           Duration start_timeout) {
  return {.devices = &devices(),
          .paths = device_paths(rules, std::max(settings.get(knobs::kNumNcclStreams), 1)),
          .wanted = rules.wanted,
          .start_timeout = start_timeout,
          .timeout = settings.get(knobs::kGlooTimeout)};
}

}  // namespace

Result<DeviceRules> read_device_rules() {
  HORO_TRY(const auto settings, read_settings());
  return device_rules_of(settings);
}

Status read_place(SessionOptions& options, const WorkerIdentity& identity) {
  HORO_TRY(const auto settings, read_settings());
  HORO_TRY(options.core,
           core_of(settings.get(knobs::kThreadAffinity), identity.local_rank, identity.local_size));
  return {};
}

void warn_of_settings() {
  static std::atomic<bool> warned{false};
  const auto settings = read_settings();
  if (!settings || warned.exchange(true)) return;
  auto warnings = settings->warnings();
  for (auto& warning : variable_warnings(environ)) warnings.push_back(std::move(warning));
  const char* told = std::getenv(kWarnedVariable);
  for (const auto& warning : without_warned(std::move(warnings), told == nullptr ? "" : told))
    log::warn("runtime", "{}", warning.text);
}

Result<SessionOptions> read_options() {
  HORO_TRY_STATUS(check_controllers(&environment_variable));
  HORO_TRY(const auto settings, read_settings());
  log::set_level(settings.get(knobs::kLogLevel));
  SessionOptions options;
  options.board = read_board(settings);
  options.groups = settings.get(knobs::kGroupFusion) ? GroupFusion::with_all : GroupFusion::inside;
  options.wake_delay_set = settings.is_set(knobs::kWakeDelay.text.key);
  options.start_timeout = settings.get(knobs::kStartTimeout);
  options.release_timeout = settings.get(knobs::kReleaseTimeout);
  options.elastic_timeout = settings.get(knobs::kElasticTimeout);
  options.stalls.warning = settings.get(knobs::kStallCheck)
                               ? std::max(settings.get(knobs::kStallWarningTime), kLeastWarning)
                               : Duration::zero();
  options.stalls.shutdown = settings.get(knobs::kStallShutdownTime);
  options.hosts = {.tree_radix = settings.get(knobs::kTreeRadix),
                   .heartbeat_timeout = settings.get(knobs::kHeartbeatTimeout),
                   .connect = {.start_timeout = options.start_timeout,
                               .operations = settings.get(knobs::kCpuOperations),
                               .gloo_interface = std::string(settings.get(knobs::kGlooInterface)),
                               .gloo_timeout = settings.get(knobs::kGlooTimeout),
                               .mpi_threads = !settings.get(knobs::kMpiThreadsDisable),
                               .deterministic = settings.get(knobs::kDeterministic),
                               .encryption = settings.get(knobs::kEncrypt) ? kv::Encryption::on
                                                                           : kv::Encryption::off,
                               .hierarchical = settings.get(knobs::kHierarchicalAllreduce),
                               .modules = {}}};
  options.recording = read_recording(settings, options.board.capacity);
  options.wire = {.dtype = wire_of(settings.get(knobs::kWireDType)),
                  .feedback = settings.get(knobs::kWireErrorFeedback)};
  options.tuner = read_tuner(settings);
  const auto& rules = set_device_rules(device_rules_of(settings));
  options.devices = read_devices(settings, rules, options.start_timeout);
  if (const auto spin = settings.get(knobs::kSpinTime)) options.spin = *spin;
  return options;
}

}  // namespace horo::runtime::capi
