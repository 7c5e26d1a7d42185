// SPDX-License-Identifier: Apache-2.0
// Counts the marks of tensors. A tensor has one count (`TensorSlot::arrivals`), which few members
// change directly. A word that many cores change in the same microsecond goes from cache to cache
// once per change, so the members of a large set count in groups, each in a word on a cache line of
// its own. The member whose mark is the last of its group adds the whole group to the tensor's
// count: 192 members change that count 12 times.
//
// Ranks that join or leave need all marks in the tensor's count. They `gather` a group: its marks
// so far go to that count, and later marks of the same generation go there directly. A mark that
// is on its way from the group to the count is missing from both for a moment. Whoever carries it
// may be the last to change the count, also a rank that gathers: each looks at the count behind its
// own change, and the one that finds all marks there makes the tensor ready.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Owns the words that say which members have marked a tensor, and how many. Thread: any, except
/// clear().
class MarkCounts {
 public:
  explicit MarkCounts(const SetRegion& region) : region_(region) {}

  /// Adds a mark of `member` and what it says about the submission, in units of `arrivals`. Returns
  /// the tensor's count behind it; none: the mark stays with its group, which is not complete.
  std::optional<std::uint64_t> add(TensorId id, int member, std::uint64_t mark) const;

  bool has(TensorId id, int member, std::memory_order order = std::memory_order_acquire) const {
    const auto m = static_cast<std::size_t>(member);
    if (!in_groups()) return (region_.tensor(id).members.load(order) >> m & 1U) != 0;
    return (group_of(id, m).load(order) >> m % kMarkGroup & 1U) != 0;
  }

  /// Some member has marked the tensor.
  bool any(TensorId id) const;

  /// Has all marks in the tensor's count, from now on until clear(), but for those on their way.
  /// Returns the count if this call has completed it; then the caller makes the tensor ready.
  [[nodiscard]] std::optional<std::uint64_t> gather(TensorId id) const;
  /// The same for the group of `member`.
  [[nodiscard]] std::optional<std::uint64_t> gather(TensorId id, int member) const;

  /// Takes back that `member` has marked the tensor, whose count no longer has its mark.
  void forget(TensorId id, int member) const;

  /// No member has marked the tensor any more. Thread: the one that appends to the log.
  void clear(TensorId id) const;

 private:
  using Word = std::atomic<std::uint64_t>;

  // A group's word: a bit per member, and from these bits on the counts of what their marks say.
  static constexpr std::uint64_t kDirect = 1ULL << 16U;
  static constexpr std::uint64_t kInline = 1ULL << 24U;
  static constexpr std::uint64_t kChanged = 1ULL << 32U;
  static constexpr std::uint64_t kGathered = 1ULL << 63U;
  static constexpr std::uint64_t kMembers = (1ULL << kMarkGroup) - 1;
  static_assert(kMarkGroup <= 16);

  /// The word of a mark, or of a whole group, in units of `arrivals`.
  static std::uint64_t counted(std::uint64_t word) {
    return static_cast<std::uint64_t>(std::popcount(word & kMembers)) * arrivals::kMark +
           (word / kDirect & 0xffU) * arrivals::kDirect +
           (word / kInline & 0xffU) * arrivals::kInline +
           (word / kChanged & 0xffU) * arrivals::kChanged;
  }

  bool in_groups() const { return region_.layout().mark_groups != 0; }

  Word& group_of(TensorId id, std::size_t member) const {
    return region_.tables()
        .mark_groups[id.index() * region_.layout().mark_groups + member / kMarkGroup]
        .word;
  }

  /// The members of the group that `member` is in.
  std::size_t size_of_group(std::size_t member) const {
    const auto first = member / kMarkGroup * kMarkGroup;
    return std::min<std::size_t>(kMarkGroup, region_.params().local_size - first);
  }

  std::uint64_t pass_on(TensorId id, std::uint64_t word) const {
    const auto more = counted(word);
    return region_.tensor(id).arrivals.fetch_add(more, std::memory_order_seq_cst) + more;
  }

  const SetRegion& region_;
};

}  // namespace horo::runtime
