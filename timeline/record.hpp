// SPDX-License-Identifier: Apache-2.0
// What one record is, and the numbers in it (docs/design/timeline.md). Plain bytes: they lie in
// shared memory and in files.
#pragma once

#include <array>
#include <cstdint>
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
};

/// A process set in records. Numbers of sets that are gone are given to others; what `made` counts,
/// all sets of the job before it, tells them apart.
constexpr std::uint16_t recorded_set(std::uint32_t number, std::uint32_t made) {
  return static_cast<std::uint16_t>((number & 0xffU) | (made & 0xffU) << 8U);
}

/// The number that programs know it by; of the world 0.
constexpr std::uint16_t set_number(std::uint16_t recorded) {
  return recorded & 0xffU;
}

struct Record {
  std::uint64_t ticks = 0;
  RecordKind kind = RecordKind::none;
  std::uint8_t detail = 0;
  std::uint16_t set = 0;  ///< Of recorded_set; so everywhere here.
  std::uint32_t id = 0;
  std::uint64_t x = 0;
  std::uint64_t y = 0;

  friend bool operator==(const Record&, const Record&) = default;
};

static_assert(sizeof(Record) == 32);

inline constexpr std::size_t kMembersPerRecord = 5;

/// What moves a bucket. `none`: one rank alone, or the payloads lay beside the marks.
enum class Mover : std::uint8_t { none = 0, shm = 1, gloo = 2, mpi = 3, nccl = 4, other = 5 };

Mover mover_of(std::string_view backend);
std::string_view name(Mover mover);  ///< "SHM", as activities are called.

/// Operations by the runtime's numbers: "ALLREDUCE". Numbers out of range: "UNKNOWN".
std::string_view operation_name(std::uint8_t kind);
/// Element types by the runtime's numbers: "float32".
std::string_view dtype_name(std::uint8_t dtype);

/// The fields of a begin record.
struct Begin {
  std::uint16_t set = 0;
  std::uint8_t operation = 0;
  std::uint8_t placement = 0;
  Mover mover = Mover::none;
  std::uint32_t tensors = 0;
  std::uint64_t entry = 0;
  std::uint64_t bytes = 0;
};

Record encode(const Begin& begin, std::uint64_t ticks);
Begin decode_begin(const Record& record);

Record encode_members(const std::array<std::uint32_t, kMembersPerRecord>& tensors,
                      std::size_t count, std::uint16_t set, std::uint64_t ticks);
/// The tensors of a members record; how many of them count is returned.
std::size_t decode_members(const Record& record,
                           std::array<std::uint32_t, kMembersPerRecord>& tensors);

/// How long a rank copied into and out of fusion buffers for an entry. Ticks.
struct Copies {
  std::uint16_t set = 0;
  std::uint64_t entry = 0;
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};

Record encode(const Copies& copies, std::uint64_t ticks);
Copies decode_copies(const Record& record);

/// One row of the name table.
struct NameSlot {
  static constexpr std::size_t kTextBytes = 224;
  static constexpr std::size_t kMostName = 168;

  std::uint32_t sequence = 0;  ///< Odd while it is written; 0: never.
  std::uint32_t id = 0;
  std::uint16_t set = 0;
  std::uint8_t operation = 0;
  std::uint8_t dtype = 0;
  std::uint8_t name_bytes = 0;
  std::uint8_t shape_bytes = 0;
  std::uint16_t unused = 0;
  std::uint64_t bytes = 0;
  std::uint64_t since = 0;  ///< Ticks.
  std::array<char, kTextBytes> text{};

  /// Both bounded, whatever the sizes say.
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

/// Ticks to nanoseconds since 1970: a line through two anchors.
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
