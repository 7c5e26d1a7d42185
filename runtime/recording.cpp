// SPDX-License-Identifier: Apache-2.0
#include "runtime/recording.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.hpp"
#include "timeline/trace.hpp"

namespace horo::runtime {

namespace {

using timeline::Recorder;

/// Of this process. Thread: one at a time.
struct State {
  RecordingOptions options;
  WorkerIdentity identity;
  std::unique_ptr<timeline::Trace> trace;
};

State& state() {
  static auto* const instance = new State;  // Exit handlers may still use it.
  return *instance;
}

constexpr std::string_view kDynamic = "DYNAMIC";

/// Whether `fd` is the memory that an agent makes, and large enough for `index`.
bool is_timeline(int fd, int index) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);

  struct stat status {};

  return seals >= 0 && (seals & kSeals) == kSeals && fstat(fd, &status) == 0 &&
         status.st_size >= static_cast<off_t>(timeline::kRegionStride) * (index + 1);
}

/// The agent's memory: inherited, or, when a wrapper closed the descriptor, through the agent's
/// own.
UniqueFd find_memory(const WorkerIdentity& identity) {
  if (identity.timeline_fd < 0) return {};
  UniqueFd inherited(fcntl(identity.timeline_fd, F_DUPFD_CLOEXEC, 3));
  if (inherited && is_timeline(inherited.value(), identity.timeline_index)) {
    fcntl(identity.timeline_fd, F_SETFD, FD_CLOEXEC);  // Not for the programs this rank starts.
    return inherited;
  }
  const auto path = fmt::format("/proc/{}/fd/{}", identity.agent_pid, identity.timeline_fd);
  UniqueFd lent(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return lent && is_timeline(lent.value(), identity.timeline_index) ? std::move(lent) : UniqueFd();
}

std::string own_host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

void start_recording(const RecordingOptions& options, const WorkerIdentity& identity) {
  state().options = options;
  state().identity = identity;
  if (!options.recorder && options.trace.empty()) return;
  timeline::Identity me{.rank = identity.rank.value(),
                        .size = identity.size,
                        .local_rank = identity.local_rank.value(),
                        .pid = getpid()};
  me.set_host(identity.hostname.empty() ? own_host() : identity.hostname);
  me.set_job(identity.job_id);
  const auto opened = Recorder::open({.memory = find_memory(identity),
                                      .index = identity.timeline_index,
                                      .ring_memory = options.memory,
                                      .name_slots = options.names,
                                      .identity = me});
  if (!opened) log::debug("runtime", "no timeline: {}", opened.error().message);
  if (options.trace.empty() || options.trace == kDynamic) return;
  if (auto started = start_trace(options.trace, options.mark_cycles); !started)
    log::warn("timeline", "no trace is written: {}", started.error().message);
}

void stop_recording() {
  stop_trace();
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

void record_begun(std::size_t set, std::uint64_t number, const Entry& entry, const Bucket& bucket,
                  const Backend& backend) {
  auto* const recorder = Recorder::current();
  if (recorder == nullptr) return;
  const bool moved = entry.placement == Placement::direct || entry.placement == Placement::staged;
  recorder->begin({.set = static_cast<std::uint16_t>(set),
                   .operation = static_cast<std::uint8_t>(bucket.like.kind),
                   .placement = static_cast<std::uint8_t>(entry.placement),
                   .mover = moved ? timeline::mover_of(backend.caps().name) : timeline::Mover::none,
                   .entry = number,
                   .bytes = entry.bytes},
                  entry.ids.size(),
                  [&](std::size_t i) { return static_cast<std::uint32_t>(entry.ids[i]); });
}

void record_declared(std::size_t set, TensorId id, std::string_view name,
                     const Signature& signature) {
  auto* const recorder = Recorder::current();
  if (recorder == nullptr) return;
  const auto dims = std::min<std::size_t>(signature.ndim, Signature::kDims);
  recorder->declare(static_cast<std::uint16_t>(set), id,
                    {.name = name,
                     .operation = static_cast<std::uint8_t>(signature.kind),
                     .dtype = static_cast<std::uint8_t>(signature.dtype),
                     .bytes = moves_nothing(signature.kind) ? 0 : signature.bytes(),
                     .shape = std::span(signature.extents).first(dims)});
}

void record_stalls(std::size_t lines) {
  auto* const recorder = Recorder::current();
  if (recorder != nullptr && lines != 0) recorder->stall(lines);
}

void record_lost(Rank rank) {
  if (auto* const recorder = Recorder::current(); recorder != nullptr) recorder->lost(rank);
}

}  // namespace horo::runtime
