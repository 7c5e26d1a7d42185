// SPDX-License-Identifier: Apache-2.0
// The format of one record (docs/design/timeline.md). Records are plain bytes: they lie in shared
// memory and in files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace horo::timeline {

enum class RecordKind : std::uint8_t {
  none = 0,
  submit = 1,
  begin = 2,
  members = 3,
  end = 4,
  wait = 5,
  stall = 6,
  declare = 7,
  lost = 8,
  copies = 9,
  mismatch = 10,
  member = 11,
  arrival = 12,
  tuning = 13,
  generation = 14,
  device = 15,
  no_device_times = 16,
};

/// The number that records use for a process set. The runtime reuses the numbers of removed sets;
/// `made`, the count of sets made before this one, tells such sets apart.
constexpr std::uint16_t recorded_set(std::uint32_t number, std::uint32_t made) {
  return static_cast<std::uint16_t>((number & 0xffU) | (made & 0xffU) << 8U);
}

/// The set's number as programs see it; the world is 0.
constexpr std::uint16_t set_number(std::uint16_t recorded) {
  return recorded & 0xffU;
}

struct Record {
  std::uint64_t ticks = 0;
  RecordKind kind = RecordKind::none;
  std::uint8_t detail = 0;
  std::uint16_t set = 0;  ///< A value of recorded_set(), as in all types of this file.
  std::uint32_t id = 0;
  std::uint64_t x = 0;
  std::uint64_t y = 0;

  friend bool operator==(const Record&, const Record&) = default;
};

static_assert(sizeof(Record) == 32);

inline constexpr std::size_t kMembersPerRecord = 5;

/// The backend that moves a bucket. `none`: the set has one rank, or the payloads were small enough
/// to travel with the marks.
enum class Mover : std::uint8_t {
  none = 0,
  shm = 1,
  gloo = 2,
  mpi = 3,
  nccl = 4,
  other = 5,
  tcp = 6
};

Mover mover_of(std::string_view backend);
std::string_view name(Mover mover);  ///< "SHM": the prefix of an activity's name.

/// Why a set with members on several hosts moves a bucket along the path that it takes.
enum class PathReason : std::uint8_t {
  none = 0,  ///< The set has one path only, or the payloads travelled with the marks.
  by_hosts = 1,
  too_small = 2,
  needs_all_inputs = 3,
  no_allreduce = 4,
  one_rank_on_a_host = 5,
  one_host = 6,
  switched_off = 7,
  rank_order = 8,
  device_memory = 9,
  carried = 10,  ///< The agreement between hosts has moved it.
  unknown = 11,
};

/// "by hosts", "whole", "carried" or "by devices"; empty: there is no reason.
std::string_view path_name(PathReason reason);
/// "too small for two more steps"
std::string_view text(PathReason reason);

/// The name of the runtime's operation number: "ALLREDUCE". Out of range: "UNKNOWN".
std::string_view operation_name(std::uint8_t kind);
/// The name of the runtime's element type number: "float32".
std::string_view dtype_name(std::uint8_t dtype);

/// The fields of a begin record.
struct Begin {
  std::uint16_t set = 0;
  std::uint8_t operation = 0;
  std::uint8_t placement = 0;
  Mover mover = Mover::none;
  PathReason reason = PathReason::none;
  std::uint32_t tensors = 0;
  std::uint64_t entry = 0;
  std::uint64_t bytes = 0;
};

Record encode(const Begin& begin, std::uint64_t ticks);
Begin decode_begin(const Record& record);

Record encode_members(const std::array<std::uint32_t, kMembersPerRecord>& tensors,
                      std::size_t count, std::uint16_t set, std::uint64_t ticks);
/// Writes the tensors of a members record to `tensors`, and returns how many there are.
std::size_t decode_members(const Record& record,
                           std::array<std::uint32_t, kMembersPerRecord>& tensors);

/// How long a rank copied into and out of fusion buffers for one entry, in ticks.
struct Copies {
  std::uint16_t set = 0;
  std::uint64_t entry = 0;
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};

Record encode(const Copies& copies, std::uint64_t ticks);
Copies decode_copies(const Record& record);

/// The values that a tuning sets, before or after a rank changed them. A change is two records.
struct RecordedTuning {
  std::uint16_t set = 0;
  bool after = false;
  std::uint64_t fusion_threshold = 0;
  std::uint64_t cycle_ns = 0;
  std::uint64_t wake_delay_ns = 0;  ///< Kept in microseconds.
  std::uint64_t small_message = 0;

  friend bool operator==(const RecordedTuning&, const RecordedTuning&) = default;
};

Record encode(const RecordedTuning& values, std::uint64_t ticks);
RecordedTuning decode_tuned(const Record& record);
/// "fusion.threshold 64 MiB to 2 MiB, wake.delay 50 us to 100 us": the values that differ.
std::string changes_text(const RecordedTuning& before, const RecordedTuning& after);

/// Brings the two records of a change together. Thread: owner.
class TuningChange {
 public:
  /// Takes a record of kind tuning. Returns changes_text() when it completes a change.
  std::optional<std::string> take(const Record& record);

 private:
  std::optional<RecordedTuning> before_;
};

/// The rank has entered a generation of an elastic job.
struct RecordedGeneration {
  std::uint64_t generation = 0;
  int ranks = 0;
  int survivors = 0;  ///< How many of the ranks were in the generation before.

  friend bool operator==(const RecordedGeneration&, const RecordedGeneration&) = default;
};

Record encode(const RecordedGeneration& entered, std::uint64_t ticks);
RecordedGeneration decode_generation(const Record& record);

/// The kinds of work of a device for an operation.
enum class DevicePhase : std::uint8_t {
  other = 0,
  pack = 1,
  nccl = 2,
  ipc = 3,  ///< The kernel that reads the memory of all ranks' devices.
  unpack = 4,
  to_host = 5,  ///< Copies to the host memory through which the operation goes, and back.
  to_device = 6,
};

/// "PACK", "NCCL": an activity's name, or the prefix of one.
std::string_view name(DevicePhase phase);
/// "NCCL_ALLREDUCE"; "PACK", because packing is the same for all operations.
std::string activity_name(DevicePhase phase, std::string_view operation);

/// A device worked for an entry.
struct RecordedDevicePhase {
  std::uint16_t set = 0;
  std::uint64_t entry = 0;
  DevicePhase phase = DevicePhase::other;
  int device = 0;               ///< Its index in the rank's process, up to 255.
  int stream = 0;               ///< Up to 255.
  std::uint64_t before_ns = 0;  ///< It began so long before the record's ticks.
  std::uint64_t lasted_ns = 0;  ///< As all times here, it is a multiple of kDeviceUnitNs.
  std::uint64_t error_ns = 0;   ///< The beginning may be wrong by this; 4 ms: or by more.

  friend bool operator==(const RecordedDevicePhase&, const RecordedDevicePhase&) = default;
};

inline constexpr std::uint64_t kDeviceUnitNs = 16;

Record encode(const RecordedDevicePhase& phase, std::uint64_t ticks);
RecordedDevicePhase decode_device_phase(const Record& record);

/// Why the times at which a device worked are not known.
enum class NoDeviceTimes : std::uint8_t {
  unsupported = 0,
  not_made = 1,
  not_recorded = 2,
  not_read = 3,
  unknown = 4,
};

/// It is not known when the device worked for the entry.
Record encode(NoDeviceTimes reason, const RecordedDevicePhase& entry, std::uint64_t ticks);

/// "the device could not record an event"
std::string_view text(NoDeviceTimes reason);

/// One row of the name table: a tensor as it was declared.
struct NameSlot {
  static constexpr std::size_t kTextBytes = 224;
  static constexpr std::size_t kMostName = 168;

  std::uint32_t sequence = 0;  ///< Odd while the row is being written; 0: never written.
  std::uint32_t id = 0;
  std::uint16_t set = 0;
  std::uint8_t operation = 0;
  std::uint8_t dtype = 0;
  std::uint8_t name_bytes = 0;
  std::uint8_t shape_bytes = 0;
  std::uint16_t unused = 0;
  std::uint64_t bytes = 0;
  std::uint64_t since = 0;  ///< Ticks at the declaration.
  std::array<char, kTextBytes> text{};

  /// Both stay inside `text`, even where the size fields are damaged.
  std::string_view name() const;
  std::string_view shape() const;  ///< "[2, 3]"
};

static_assert(sizeof(NameSlot) == 256);

/// The same moment on three clocks.
struct Anchor {
  std::int64_t ticks = 0;
  std::int64_t monotonic_ns = 0;
  std::int64_t wall_ns = 0;
};

/// Converts ticks to nanoseconds since 1970, along a line through two anchors.
class TickClock {
 public:
  TickClock() = default;
  TickClock(const Anchor& first, const Anchor& last);

  std::int64_t wall_ns(std::uint64_t ticks) const;

  double ns_per_tick() const { return ns_per_tick_; }

 private:
  Anchor from_{};
  double ns_per_tick_ = 1;
};

}  // namespace horo::timeline
