// SPDX-License-Identifier: Apache-2.0
// Records as they lie in rings where there are many: a submission in a word, and members whose
// numbers follow each other in one record. What a thousand tensors leave per step would else push
// the step's own data out of the caches. Readers get them one by one, and files hold them so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "timeline/record.hpp"

namespace horo::timeline {

/// A submission in a word: ticks since the last base, in units of kWordTicks, from bit 40; process
/// set from bit 24; tensor. A word whose highest bit is set is a base: ticks.
struct SubmitWord {
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 63U;
  static constexpr std::uint64_t kTicks = 16;  ///< As much too early may a submission be.
  static constexpr std::uint64_t kMostTicks = kTicks << 23U;
  static constexpr std::uint32_t kMostId = 1U << 24U;
  /// At a multiple of it there is a base: whoever missed what was before goes on there.
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
  /// Appends the submissions; returns how many words say nothing without a base that was missed.
  std::size_t read(std::span<const std::uint64_t> words, std::vector<Record>& to);

  /// Words were missed.
  void lose() { known_ = false; }

 private:
  std::uint64_t base_ = 0;
  bool known_ = false;
};

// -- Members -------------------------------------------------------------------------------------

/// Of rings alone: `detail` tensors from `id` on upwards, or where x is 1 downwards.
inline constexpr auto kMemberRow = static_cast<RecordKind>(64);
inline constexpr std::size_t kLeastInRow = kMembersPerRecord + 1;
inline constexpr std::size_t kMostInRow = 120;

/// How many tensors from member(i) on stand in a row, up to kMostInRow; `step`: 1 or -1.
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

/// Appends what a record of a ring stands for.
void unpack(const Record& from, std::vector<Record>& to);

}  // namespace horo::timeline
