// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/knob_table.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/knobs/elastic_knobs.hpp"
#include "base/knobs/gpu_knobs.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/mpi_knobs.hpp"
#include "base/knobs/timeline_knobs.hpp"

namespace horo {

namespace {

template <typename T>
constexpr KnobKind kind_of() {
  if constexpr (std::is_same_v<T, bool>) return KnobKind::boolean;
  if constexpr (std::is_same_v<T, int>) return KnobKind::integer;
  if constexpr (std::is_same_v<T, double>) return KnobKind::real;
  if constexpr (std::is_same_v<T, Bytes>) return KnobKind::bytes;
  if constexpr (std::is_same_v<T, Duration>) return KnobKind::duration;
  if constexpr (std::is_same_v<T, std::optional<Duration>>) return KnobKind::duration;
  if constexpr (std::is_same_v<T, std::string_view>) return KnobKind::text;
  return KnobKind::choice;
}

template <typename T>
constexpr KnobConstant constant(const T& value) {
  if constexpr (std::is_same_v<T, std::optional<Duration>>) {
    if (!value) return std::monostate{};
    return std::int64_t{value->count()};
  } else if constexpr (std::is_same_v<T, Duration>) {
    return std::int64_t{value.count()};
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return static_cast<std::int64_t>(value.value());
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::string_view>) {
    return value;
  } else {
    return static_cast<std::int64_t>(value);
  }
}

template <typename T>
constexpr KnobRow row(const Knob<T>& knob) {
  return {.text = &knob.text,
          .kind = kind_of<T>(),
          .tunable = knob.tunable,
          .fallback = constant(knob.fallback),
          .least = constant(knob.least),
          .most = constant(knob.most)};
}

constexpr std::array kRows{
    row(knobs::kFusionThreshold),
    row(knobs::kGroupFusion),
    row(knobs::kCycleTime),
    row(knobs::kCacheCapacity),
    row(knobs::kWakeDelay),
    row(knobs::kSmallMessage),
    row(knobs::kSpinTime),
    row(knobs::kDeterministic),
    row(knobs::kHierarchicalAllreduce),
    row(knobs::kHierarchicalAllgather),
    row(knobs::kTorusAllreduce),
    row(knobs::kWireDType),
    row(knobs::kWireErrorFeedback),
    row(knobs::kTreeRadix),
    row(knobs::kShmChunk),
    row(knobs::kShmRing),
    row(knobs::kArenaSize),
    row(knobs::kSlotsPerHost),
    row(knobs::kRanksPerHost),
    row(knobs::kMapBy),
    row(knobs::kBindTo),
    row(knobs::kGpus),
    row(knobs::kDiscoveryTimeout),
    row(knobs::kStarter),
    row(knobs::kRshAgent),
    row(knobs::kSshPort),
    row(knobs::kSshIdentityFile),
    row(knobs::kSshProgram),
    row(knobs::kFanout),
    row(knobs::kNetworkInterfaces),
    row(knobs::kEnvAllow),
    row(knobs::kEnvDeny),
    row(knobs::kMinNp),
    row(knobs::kMaxNp),
    row(knobs::kSpares),
    row(knobs::kElasticTimeout),
    row(knobs::kRejoinTimeout),
    row(knobs::kTermGrace),
    row(knobs::kResetLimit),
    row(knobs::kSlotRestarts),
    row(knobs::kBlacklistCooldownRange),
    row(knobs::kStartTimeout),
    row(knobs::kTimeout),
    row(knobs::kFailureGrace),
    row(knobs::kGrace),
    row(knobs::kSignal),
    row(knobs::kMaxRestarts),
    row(knobs::kRestartOn),
    row(knobs::kHeartbeatTimeout),
    row(knobs::kReleaseTimeout),
    row(knobs::kTag),
    row(knobs::kPrefix),
    row(knobs::kPrefixTimestamp),
    row(knobs::kOutputRanks),
    row(knobs::kFold),
    row(knobs::kOutputFilename),
    row(knobs::kStdin),
    row(knobs::kJsonReport),
    row(knobs::kVerbose),
    row(knobs::kLogLevel),
    row(knobs::kLogTimestamp),
    row(knobs::kAutotune),
    row(knobs::kAutotuneLogFile),
    row(knobs::kAutotuneWarmupSamples),
    row(knobs::kAutotuneStepsPerSample),
    row(knobs::kAutotuneMaxSamples),
    row(knobs::kAutotuneMemory),
    row(knobs::kAutotuneWatchTime),
    row(knobs::kAutotuneNoise),
    row(knobs::kTimelineRecorder),
    row(knobs::kTimelineMemory),
    row(knobs::kTimelineSeconds),
    row(knobs::kTimelineDirectory),
    row(knobs::kTimelineFilename),
    row(knobs::kTimelineMarkCycles),
    row(knobs::kTimelineAllRanks),
    row(knobs::kTimelineNvtx),
    row(knobs::kTimelineLimit),
    row(knobs::kStallCheck),
    row(knobs::kStallWarningTime),
    row(knobs::kStallShutdownTime),
    row(knobs::kCpuOperations),
    row(knobs::kGpuOperations),
    row(knobs::kGpuDriver),
    row(knobs::kTorchBackend),
    row(knobs::kGpuNccl),
    row(knobs::kGpuAsyncCompletion),
    row(knobs::kEncrypt),
    row(knobs::kGlooInterface),
    row(knobs::kGlooTimeout),
    row(knobs::kMpiThreadsDisable),
    row(knobs::kNumNcclStreams),
    row(knobs::kThreadAffinity),
    row(knobs::kMpirun),
    row(knobs::kMpiArgs),
    row(knobs::kBindingArgs),
    row(knobs::kTcp),
};

std::string dotted(std::string_view path) {
  std::string result(path);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c == '_' || c == '-'; }, '.');
  return result;
}

/// Whether `name` is `key` with each '.' replaced by `joint`.
bool is_derived(std::string_view name, std::string_view key, char joint) {
  return std::equal(name.begin(), name.end(), key.begin(), key.end(),
                    [joint](char n, char k) { return n == (k == '.' ? joint : k); });
}

KnobMatch match_plain_flag(std::string_view flag) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const KnobText& text = *kRows[i].text;
    if (is_derived(flag, text.key, '-')) return {static_cast<int>(i), {}};
    for (const auto& spelling : text.flags) {
      if (!spelling.name.empty() && spelling.name == flag) return {static_cast<int>(i), spelling};
    }
  }
  return {};
}

}  // namespace

std::span<const KnobRow> knob_rows() {
  return kRows;
}

int knob_index(std::string_view key) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].text->key == key) return static_cast<int>(i);
  }
  return -1;
}

std::string flag_name(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '.', '-');
  return name;
}

std::string variable_name(std::string_view key) {
  std::string name = "HORO_";
  for (const char c : key) {
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

KnobMatch match_flag(std::string_view flag) {
  if (const auto match = match_plain_flag(flag); match.index >= 0) return match;
  if (!flag.starts_with("no-")) return {};
  auto match = match_plain_flag(flag.substr(3));
  if (match.index < 0 || kRows.at(static_cast<std::size_t>(match.index)).kind != KnobKind::boolean)
    return {};
  match.spelling.inverted = !match.spelling.inverted;
  return match;
}

KnobMatch match_config(std::string_view path) {
  const auto name = dotted(path);
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const KnobText& text = *kRows[i].text;
    if (text.key == name) return {static_cast<int>(i), {}};
    if (!text.config.name.empty() && dotted(text.config.name) == name) {
      return {static_cast<int>(i), text.config};
    }
  }
  return {};
}

}  // namespace horo
