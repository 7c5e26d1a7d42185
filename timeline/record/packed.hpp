// SPDX-License-Identifier: Apache-2.0
// The packed form of frequent records in rings: a submission takes one word, and members with
// consecutive numbers take one record. Otherwise the records of a thousand tensors per step would
// evict the step's own data from the caches. Readers unpack them, and files hold them unpacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "timeline/record/record.hpp"

namespace horo::timeline {

/// A submission in one word: from bit 40 the ticks since the last base, in units of kTicks; from
/// bit 24 the process set; below that the tensor. A word whose highest bit is set is a base: the
/// other bits are ticks.
struct SubmitWord {
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 63U;
  static constexpr std::uint64_t kTicks = 16;  ///< Resolution: times are rounded down to it.
  static constexpr std::uint64_t kMostTicks = kTicks << 23U;
  static constexpr std::uint32_t kMostId = 1U << 24U;
  /// Each multiple of this index holds a base, where a reader that missed words can continue.
  static constexpr std::uint64_t kBlock = 64;

  static constexpr bool fits(std::uint32_t id, std::uint64_t passed) {
    return id < kMostId && passed < kMostTicks;
  }

  static constexpr std::uint64_t of(std::uint16_t set, std::uint32_t id, std::uint64_t passed) {
    return passed / kTicks << 40U | std::uint64_t{set} << 24U | id;
  }
};

/// Reads the words of one ring in their order.
class SubmitReader {
 public:
  /// Appends the submissions. Returns how many words could not be used because their base was lost.
  std::size_t read(std::span<const std::uint64_t> words, std::vector<Record>& to);

  /// Tells the reader that words were overwritten before it could read them.
  void lose() { known_ = false; }

 private:
  std::uint64_t base_ = 0;
  bool known_ = false;
};

// -- Members -------------------------------------------------------------------------------------

/// A record kind that occurs in rings only: `detail` tensors from `id` on, counted upwards, or
/// downwards where x is 1.
inline constexpr auto kMemberRow = static_cast<RecordKind>(64);
inline constexpr std::size_t kLeastInRow = kMembersPerRecord + 1;
inline constexpr std::size_t kMostInRow = 120;

/// How many tensors from member(i) on have consecutive numbers, up to kMostInRow. `step` becomes 1
/// or -1.
template <typename Member>
std::size_t length_of_row(std::size_t i, std::size_t count, const Member& member,
                          std::uint32_t& step) {
  if (i + 1 >= count) return 1;
  step = member(i + 1) - member(i);
  if (step != 1 && step + 1 != 0) return 1;
  const auto most = count - i < kMostInRow ? count - i : kMostInRow;
  std::size_t length = 2;
  while (length < most && member(i + length) - member(i + length - 1) == step) ++length;
  return length;
}

/// Appends the records that a ring's record stands for.
void unpack(const Record& from, std::vector<Record>& to);

}  // namespace horo::timeline
