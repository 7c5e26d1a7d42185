// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/record.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace horo::timeline {

namespace {

constexpr std::uint32_t kTensorBits = 24;
constexpr std::uint32_t kTensorMask = (1U << kTensorBits) - 1;
constexpr std::uint32_t kMoverMask = 15;
constexpr std::uint32_t kReasonBit = kTensorBits + 4;

// Two durations share one 64-bit word; each holds more than twenty seconds.
constexpr std::uint64_t kCopyUnit = 16;
constexpr std::uint64_t kMostHalf = 0xffffffff;

constexpr std::array<std::string_view, 7> kMovers{"NONE", "SHM",   "GLOO", "MPI",
                                                  "NCCL", "OTHER", "TCP"};
constexpr std::array<std::string_view, 7> kOperations{
    "ALLREDUCE", "ALLGATHER", "BROADCAST", "BARRIER", "REDUCESCATTER", "ALLTOALL", "JOIN"};
constexpr std::array<std::string_view, 11> kDTypes{"uint8",   "int8",  "uint16",  "int16",
                                                   "int32",   "int64", "float16", "float32",
                                                   "float64", "bool",  "bfloat16"};

constexpr std::uint64_t kDeviceErrorUnitNs = 64;
constexpr std::uint64_t kMostDeviceError = 0xffff;
constexpr std::array<std::string_view, 7> kDevicePhases{
    "OTHER", "PACK", "NCCL", "IPC", "UNPACK", "COPY_TO_HOST", "COPY_TO_DEVICE"};
constexpr std::array<std::string_view, 5> kNoDeviceTimes{
    "the driver has no function that returns the time between two events",
    "the device could not make an event", "the device could not record an event",
    "the times of events could not be read", "recorded by another version"};

struct PathRow {
  std::string_view path;
  std::string_view why;
};

constexpr std::array<PathRow, 12> kPaths{
    {{"", ""},
     {"by hosts", "each byte crosses once"},
     {"whole", "too small for two more steps"},
     {"whole", "needs all inputs at once"},
     {"whole", "only all-reduce goes by hosts"},
     {"whole", "a host has one rank only"},
     {"whole", "one host"},
     {"whole", "hierarchical.allreduce is off"},
     {"whole", "deterministic sums go in the order of the ranks"},
     {"by devices", "the ranks choose ipc, NCCL or staging for device memory"},
     {"carried", "so small that the agreement carries it"},
     {"unknown", "recorded by another version"}}};

const PathRow& row_of(PathReason reason) {
  return kPaths[std::min(static_cast<std::size_t>(reason), kPaths.size() - 1)];
}

}  // namespace

std::string_view path_name(PathReason reason) {
  return row_of(reason).path;
}

std::string_view text(PathReason reason) {
  return row_of(reason).why;
}

Mover mover_of(std::string_view backend) {
  if (backend == "shm") return Mover::shm;
  if (backend == "tcp") return Mover::tcp;
  if (backend == "gloo") return Mover::gloo;
  if (backend == "mpi" || backend == "openmpi" || backend == "mpich") return Mover::mpi;
  if (backend == "nccl") return Mover::nccl;
  return Mover::other;
}

std::string_view name(Mover mover) {
  const auto at = static_cast<std::size_t>(mover);
  return at < kMovers.size() ? kMovers[at] : name(Mover::other);
}

std::string_view operation_name(std::uint8_t kind) {
  return kind < kOperations.size() ? kOperations[kind] : "UNKNOWN";
}

std::string_view dtype_name(std::uint8_t dtype) {
  return dtype < kDTypes.size() ? kDTypes[dtype] : "unknown";
}

Record encode(const Begin& begin, std::uint64_t ticks) {
  return {.ticks = ticks,
          .kind = RecordKind::begin,
          .detail = static_cast<std::uint8_t>((begin.operation & 15U) |
                                              static_cast<unsigned>(begin.placement & 15U) << 4U),
          .set = begin.set,
          .id = std::min(begin.tensors, kTensorMask) |
                static_cast<std::uint32_t>(begin.mover) << kTensorBits |
                static_cast<std::uint32_t>(begin.reason) << kReasonBit,
          .x = begin.entry,
          .y = begin.bytes};
}

Begin decode_begin(const Record& record) {
  const auto mover = record.id >> kTensorBits & kMoverMask;
  return {.set = record.set,
          .operation = static_cast<std::uint8_t>(record.detail & 15U),
          .placement = static_cast<std::uint8_t>(record.detail >> 4U),
          .mover = mover < kMovers.size() ? static_cast<Mover>(mover) : Mover::other,
          .reason = static_cast<PathReason>(
              std::min<std::uint32_t>(record.id >> kReasonBit, kPaths.size() - 1)),
          .tensors = record.id & kTensorMask,
          .entry = record.x,
          .bytes = record.y};
}

Record encode_members(const std::array<std::uint32_t, kMembersPerRecord>& tensors,
                      std::size_t count, std::uint16_t set, std::uint64_t ticks) {
  return {.ticks = ticks,
          .kind = RecordKind::members,
          .detail = static_cast<std::uint8_t>(count),
          .set = set,
          .id = tensors[0],
          .x = tensors[1] | std::uint64_t{tensors[2]} << 32U,
          .y = tensors[3] | std::uint64_t{tensors[4]} << 32U};
}

std::size_t decode_members(const Record& record,
                           std::array<std::uint32_t, kMembersPerRecord>& tensors) {
  tensors = {record.id, static_cast<std::uint32_t>(record.x),
             static_cast<std::uint32_t>(record.x >> 32U), static_cast<std::uint32_t>(record.y),
             static_cast<std::uint32_t>(record.y >> 32U)};
  return std::min<std::size_t>(record.detail, kMembersPerRecord);
}

Record encode(const Copies& copies, std::uint64_t ticks) {
  const auto half = [](std::uint64_t t) { return std::min(t / kCopyUnit, kMostHalf); };
  return {.ticks = ticks,
          .kind = RecordKind::copies,
          .set = copies.set,
          .x = copies.entry,
          .y = half(copies.in) | half(copies.out) << 32U};
}

Copies decode_copies(const Record& record) {
  return {.set = record.set,
          .entry = record.x,
          .in = (record.y & kMostHalf) * kCopyUnit,
          .out = (record.y >> 32U) * kCopyUnit};
}

Record encode(const RecordedTuning& values, std::uint64_t ticks) {
  return {.ticks = ticks,
          .kind = RecordKind::tuning,
          .detail = static_cast<std::uint8_t>(values.after ? 1 : 0),
          .set = values.set,
          .id = static_cast<std::uint32_t>(std::min(values.wake_delay_ns / 1000, kMostHalf)),
          .x = std::min(values.fusion_threshold, kMostHalf) |
               std::min(values.small_message, kMostHalf) << 32U,
          .y = values.cycle_ns};
}

RecordedTuning decode_tuned(const Record& record) {
  return {.set = record.set,
          .after = record.detail != 0,
          .fusion_threshold = record.x & kMostHalf,
          .cycle_ns = record.y,
          .wake_delay_ns = std::uint64_t{record.id} * 1000,
          .small_message = record.x >> 32U};
}

Record encode(const RecordedGeneration& entered, std::uint64_t ticks) {
  return {.ticks = ticks,
          .kind = RecordKind::generation,
          .x = entered.generation,
          .y = static_cast<std::uint32_t>(entered.ranks) |
               std::uint64_t{static_cast<std::uint32_t>(entered.survivors)} << 32U};
}

RecordedGeneration decode_generation(const Record& record) {
  return {.generation = record.x,
          .ranks = static_cast<int>(record.y & 0x7fffffffU),
          .survivors = static_cast<int>(record.y >> 32U & 0x7fffffffU)};
}

std::string_view name(DevicePhase phase) {
  const auto at = static_cast<std::size_t>(phase);
  return at < kDevicePhases.size() ? kDevicePhases[at] : kDevicePhases[0];
}

std::string activity_name(DevicePhase phase, std::string_view operation) {
  const bool collective = phase == DevicePhase::nccl || phase == DevicePhase::ipc;
  return collective ? fmt::format("{}_{}", name(phase), operation) : std::string(name(phase));
}

Record encode(const RecordedDevicePhase& phase, std::uint64_t ticks) {
  const auto half = [](std::uint64_t ns) { return std::min(ns / kDeviceUnitNs, kMostHalf); };
  const auto error = std::min(phase.error_ns / kDeviceErrorUnitNs, kMostDeviceError);
  return {.ticks = ticks,
          .kind = RecordKind::device,
          .detail = static_cast<std::uint8_t>(phase.phase),
          .set = phase.set,
          .id = (static_cast<std::uint32_t>(phase.device) & 0xffU) |
                (static_cast<std::uint32_t>(phase.stream) & 0xffU) << 8U |
                static_cast<std::uint32_t>(error) << 16U,
          .x = phase.entry,
          .y = half(phase.before_ns) | half(phase.lasted_ns) << 32U};
}

RecordedDevicePhase decode_device_phase(const Record& record) {
  const bool known = record.detail < kDevicePhases.size();
  return {.set = record.set,
          .entry = record.x,
          .phase = known ? static_cast<DevicePhase>(record.detail) : DevicePhase::other,
          .device = static_cast<int>(record.id & 0xffU),
          .stream = static_cast<int>(record.id >> 8U & 0xffU),
          .before_ns = (record.y & kMostHalf) * kDeviceUnitNs,
          .lasted_ns = (record.y >> 32U) * kDeviceUnitNs,
          .error_ns = (record.id >> 16U) * kDeviceErrorUnitNs};
}

Record encode(NoDeviceTimes reason, const RecordedDevicePhase& entry, std::uint64_t ticks) {
  return {.ticks = ticks,
          .kind = RecordKind::no_device_times,
          .detail = static_cast<std::uint8_t>(reason),
          .set = entry.set,
          .id = static_cast<std::uint32_t>(entry.device) & 0xffU,
          .x = entry.entry};
}

std::string_view text(NoDeviceTimes reason) {
  return kNoDeviceTimes[std::min(static_cast<std::size_t>(reason), kNoDeviceTimes.size() - 1)];
}

std::string changes_text(const RecordedTuning& before, const RecordedTuning& after) {
  std::string text;
  const auto add = [&text](std::string_view name, std::string_view unit, double scale,
                           std::uint64_t from, std::uint64_t to) {
    if (from == to) return;
    fmt::format_to(std::back_inserter(text), "{}{} {:.6g} {} to {:.6g} {}",
                   text.empty() ? "" : ", ", name, static_cast<double>(from) * scale, unit,
                   static_cast<double>(to) * scale, unit);
  };
  add("fusion.threshold", "MiB", 1.0 / (1 << 20), before.fusion_threshold, after.fusion_threshold);
  add("cycle.time", "ms", 1e-6, before.cycle_ns, after.cycle_ns);
  add("wake.delay", "us", 1e-3, before.wake_delay_ns, after.wake_delay_ns);
  add("small.message", "KiB", 1.0 / 1024, before.small_message, after.small_message);
  return text;
}

std::optional<std::string> TuningChange::take(const Record& record) {
  const auto values = decode_tuned(record);
  const auto before = std::exchange(before_, std::nullopt);
  if (!values.after) before_ = values;
  return values.after && before ? std::optional(changes_text(*before, values)) : std::nullopt;
}

std::string_view NameSlot::name() const {
  return {text.data(), std::min<std::size_t>(name_bytes, kMostName)};
}

std::string_view NameSlot::shape() const {
  return {text.data() + kMostName, std::min<std::size_t>(shape_bytes, kTextBytes - kMostName)};
}

TickClock::TickClock(const Anchor& first, const Anchor& last) : from_(first) {
  const auto ticks = static_cast<double>(last.ticks) - static_cast<double>(first.ticks);
  const auto ns = static_cast<double>(last.monotonic_ns) - static_cast<double>(first.monotonic_ns);
  if (ticks > 0 && ns > 0) ns_per_tick_ = ns / ticks;
}

std::int64_t TickClock::wall_ns(std::uint64_t ticks) const {
  // Ticks and anchors come from files. The result is bounded, so that differences do not overflow.
  constexpr double kMost = 4e17;
  constexpr std::int64_t kMostWall = 4'000'000'000'000'000'000;  // A time in the year 2096.
  const auto passed = static_cast<std::int64_t>(ticks - static_cast<std::uint64_t>(from_.ticks));
  const auto ns = std::clamp(static_cast<double>(passed) * ns_per_tick_, -kMost, kMost);
  return std::clamp(from_.wall_ns, -kMostWall, kMostWall) + static_cast<std::int64_t>(ns);
}

}  // namespace horo::timeline
