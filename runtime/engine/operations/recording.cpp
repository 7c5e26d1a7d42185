// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/operations/recording.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "timeline/chrome/trace.hpp"
#include "timeline/record/nvtx.hpp"

namespace horo::runtime {

namespace {

using timeline::Recorder;

/// The state of this process. Thread: one at a time.
struct State {
  RecordingOptions options;
  WorkerIdentity identity;
  std::unique_ptr<timeline::Trace> trace;
};

/// Owns the open ranges, by process set and entry. Thread: any.
class Ranges {
 public:
  explicit Ranges(const timeline::Nvtx& nvtx) : nvtx_(nvtx) {}

  /// False: no profiler takes ranges, now or later.
  bool begin(std::uint16_t set, std::uint64_t entry, const std::string& text) {
    const auto range = nvtx_.begin(text.c_str());
    if (range == 0) return false;
    const MutexLock lock(mutex_);
    open_[{set, entry}] = range;
    return true;
  }

  void end(std::uint16_t set, std::uint64_t entry) {
    const MutexLock lock(mutex_);
    if (const auto range = open_.extract({set, entry}); !range.empty()) nvtx_.end(range.mapped());
  }

  /// Ends the ranges of operations that will not end by themselves.
  void end_all() {
    const MutexLock lock(mutex_);
    for (const auto& [entry, range] : std::exchange(open_, {})) nvtx_.end(range);
  }

 private:
  const timeline::Nvtx nvtx_;
  Mutex mutex_;
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::uint64_t> open_ HORO_GUARDED_BY(mutex_);
};

std::atomic<Ranges*> ranges{nullptr};

void start_ranges() {
  static Ranges* const only = []() -> Ranges* {
    const auto nvtx = timeline::Nvtx::find();
    if (nvtx) return new Ranges(*nvtx);  // Never freed: threads may use it until the process ends.
    log::debug("timeline", "{}", nvtx.error().message);
    return nullptr;
  }();
  ranges.store(only, std::memory_order_release);
}

void begin_range(std::uint16_t set, std::uint64_t number, const Entry& entry,
                 const Bucket& bucket) {
  auto* const open = ranges.load(std::memory_order_acquire);
  if (open == nullptr) return;
  std::string text(timeline::operation_name(static_cast<std::uint8_t>(bucket.like.kind)));
  const auto* const recorder = Recorder::current();
  if (recorder != nullptr && !entry.ids.empty()) {
    text += fmt::format(" {}", recorder->name_of(set, static_cast<std::uint32_t>(entry.ids[0])));
  }
  if (entry.ids.size() > 1) text += fmt::format(" and {} more", entry.ids.size() - 1);
  if (!open->begin(set, number, text)) ranges.store(nullptr, std::memory_order_release);
}

State& state() {
  static auto* const instance = new State;  // Never freed: exit handlers may still use it.
  return *instance;
}

/// The memory that the agent made for this rank's timeline: inherited or, when a wrapper has closed
/// the descriptor, opened through the agent's own.
UniqueFd find_memory(const WorkerIdentity& identity) {
  if (identity.timeline_fd < 0) return {};
  UniqueFd inherited(fcntl(identity.timeline_fd, F_DUPFD_CLOEXEC, 3));
  if (inherited && timeline::is_memory(inherited.value(), identity.timeline_index)) {
    fcntl(identity.timeline_fd, F_SETFD, FD_CLOEXEC);  // Programs that this rank starts lack it.
    return inherited;
  }
  const auto path = fmt::format("/proc/{}/fd/{}", identity.agent_pid, identity.timeline_fd);
  UniqueFd lent(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return lent && timeline::is_memory(lent.value(), identity.timeline_index) ? std::move(lent)
                                                                            : UniqueFd();
}

/// Whether this rank of a larger job has begun a job of its own, as its peers may have done. They
/// share the setting, and the first one writes the file.
bool left_for_job_alone(const WorkerIdentity& identity) {
  return identity.size == 1 && identity.job_id.empty() && std::getenv("HORO_JOB_ID") != nullptr;
}

std::string own_host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

void start_recording(const RecordingOptions& options, const WorkerIdentity& identity) {
  state().options = options;
  state().identity = identity;
  if (options.nvtx) start_ranges();
  if (!options.recorder && options.trace.empty()) return;
  timeline::RankIdentity me{.rank = identity.rank.value(),
                            .size = identity.size,
                            .local_rank = identity.local_rank.value(),
                            .pid = getpid()};
  me.set_host(identity.hostname.empty() ? own_host() : identity.hostname);
  me.set_job(identity.job_id);
  const auto opened = Recorder::open({.memory = find_memory(identity),
                                      .index = identity.timeline_index,
                                      .ring_memory = options.memory,
                                      .keep = options.keep,
                                      .name_slots = options.names,
                                      .identity = me});
  if (!opened) log::debug("runtime", "no timeline: {}", opened.error().message);
  if (options.trace.empty() || options.trace == kNoTraceYet) return;
  const auto started = start_trace(options.trace, options.mark_cycles);
  if (started || (started.error().code == Errc::unavailable && left_for_job_alone(identity)))
    return;
  log::warn("timeline", "no trace is written: {}", started.error().message);
}

void stop_recording() {
  stop_trace();
  if (auto* const open = ranges.exchange(nullptr, std::memory_order_acq_rel); open != nullptr)
    open->end_all();
  Recorder::close();
}

Status start_trace(const std::string& path, bool mark_cycles) {
  auto& s = state();
  if (s.identity.rank != Rank{0}) return {};
  if (s.trace != nullptr && s.trace->path() == path) return {};
  stop_trace();
  HORO_TRY(s.trace, timeline::Trace::start({.path = path,
                                            .mark_cycles = mark_cycles,
                                            .all_ranks = s.options.all_ranks,
                                            .limit = s.options.trace_limit}));
  return {};
}

void stop_trace() {
  state().trace.reset();
}

void record_begun(std::uint16_t set, std::uint64_t number, const Entry& entry, const Bucket& bucket,
                  const BucketMover& by) {
  begin_range(set, number, entry, bucket);
  auto* const recorder = Recorder::current();
  if (recorder == nullptr) return;
  recorder->begin({.set = set,
                   .operation = static_cast<std::uint8_t>(bucket.like.kind),
                   .placement = static_cast<std::uint8_t>(entry.path),
                   .mover = by.mover,
                   .reason = by.reason,
                   .entry = number,
                   .bytes = entry.bytes},
                  entry.ids.size(),
                  [&](std::size_t i) { return static_cast<std::uint32_t>(entry.ids[i]); });
}

void record_copied(std::uint16_t set, std::uint64_t entry, const CopyTimes& now,
                   CopyTimes& before) {
  const auto passed = now - std::exchange(before, now);
  auto* const recorder = Recorder::current();
  if (recorder == nullptr || passed == CopyTimes()) return;
  recorder->copied({.set = set, .entry = entry, .in = passed.in, .out = passed.out});
}

void record_device_times(std::uint16_t set, std::uint64_t entry, const DeviceTimes& times) {
  auto* const recorder = Recorder::current();
  if (recorder == nullptr || (times.phases.empty() && !times.missing)) return;
  timeline::RecordedDevicePhase record{.set = set, .entry = entry, .device = times.device};
  if (times.missing) recorder->put(encode(*times.missing, record, recorder->now()));
  const auto ns = [](Duration d) {
    return static_cast<std::uint64_t>(std::max<Duration::rep>(d.count(), 0));
  };
  const auto ticks = recorder->now();
  const auto now = SteadyClock::instance().now();
  for (const auto& phase : times.phases) {
    record.phase = phase.phase;
    record.device = phase.device;
    record.stream = phase.stream;
    record.before_ns = ns(now - phase.from);
    record.lasted_ns = ns(phase.to - phase.from);
    record.error_ns = ns(phase.error);
    recorder->put(encode(record, ticks));
  }
}

void end_range(std::uint16_t set, std::uint64_t entry) {
  if (auto* const open = ranges.load(std::memory_order_acquire); open != nullptr)
    open->end(set, entry);
}

void record_declared(std::uint16_t set, TensorId id, std::string_view name,
                     const Signature& signature) {
  auto* const recorder = Recorder::current();
  if (recorder == nullptr) return;
  const auto dims = std::min<std::size_t>(signature.ndim, Signature::kDims);
  recorder->declare(set, id,
                    {.name = name,
                     .operation = static_cast<std::uint8_t>(signature.kind),
                     .dtype = static_cast<std::uint8_t>(signature.dtype),
                     .bytes = moves_nothing(signature.kind) ? 0 : signature.bytes(),
                     .shape = std::span(signature.extents).first(dims)});
}

void record_tuned(std::uint16_t set, const Tuning& before, const Tuning& after) {
  auto* const recorder = Recorder::current();
  if (recorder == nullptr || before == after) return;
  const auto values = [set](const Tuning& tuning, bool is_after) {
    return timeline::RecordedTuning{.set = set,
                                    .after = is_after,
                                    .fusion_threshold = tuning.fusion_threshold,
                                    .cycle_ns = tuning.cycle_ns,
                                    .wake_delay_ns = tuning.wake_delay_ns,
                                    .small_message = tuning.small_message};
  };
  recorder->tuned(values(before, false), values(after, true));
}

void record_stalls(std::size_t lines) {
  auto* const recorder = Recorder::current();
  if (recorder != nullptr && lines != 0) recorder->stall(lines);
}

void record_mismatch(std::uint16_t set, TensorId id) {
  if (auto* const recorder = Recorder::current(); recorder != nullptr) recorder->mismatch(set, id);
}

void record_member(std::uint16_t set) {
  if (auto* const recorder = Recorder::current(); recorder != nullptr) recorder->member(set);
}

void record_entered(const timeline::RecordedGeneration& generation) {
  if (auto* const recorder = Recorder::current(); recorder != nullptr)
    recorder->entered(generation);
}

void record_lost(Rank rank) {
  if (auto* const recorder = Recorder::current(); recorder != nullptr) recorder->lost(rank);
}

}  // namespace horo::runtime
