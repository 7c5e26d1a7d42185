// SPDX-License-Identifier: Apache-2.0
/// Process sets: some ranks of the job, whose collectives run independently of other sets.
///
///   const auto evens = horo::ProcessSet::add(std::vector{0, 2});   // all ranks of the job call it
///   if (evens.included()) job.allreduce<float>("loss", loss, {}, evens);
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <horo/error.hpp>
#include <horo/horo.h>

namespace horo {
inline namespace v1 {

/// The number of a set; cheap to copy. Destroying it does not remove the set. By default it is the
/// world: all ranks. For a set that does not exist, rank() and size() are -1. Thread: any.
class ProcessSet {
 public:
  /// The world.
  ProcessSet() = default;

  /// The set that has this number.
  explicit ProcessSet(horo_set id) noexcept : id_(id) {}

  /// All ranks of the job, members or not, call it with the same ranks, and add and remove sets in
  /// the same order. Blocks: until all have. Fails: INVALID_ARGUMENT (no such rank, a rank twice,
  /// no rank), DUPLICATE (these ranks are a set already), MISMATCH (ranks asked for different sets;
  /// names them), RESOURCE_EXHAUSTED (256 sets), PEER_LOST, SHUT_DOWN, NOT_INITIALIZED, FORKED.
  static ProcessSet add(std::span<const int> ranks) {
    ProcessSet set;
    check(horo_add_process_set(ranks.data(), ranks.size(), &set.id_));
    set.begin_barriers();
    return set;
  }

  /// All ranks of the job call it. Operations that not all members have submitted end with
  /// SHUT_DOWN; its tensors must not be used any more. Blocks: until all ranks have called it.
  /// Fails: NOT_FOUND, INVALID_ARGUMENT (the world), MISMATCH, PEER_LOST, SHUT_DOWN.
  void remove() const { check(horo_remove_process_set(id_)); }

  /// The set's number, the same on all ranks.
  horo_set id() const noexcept { return id_; }

  /// Position of the calling rank in the set; -1: not a member.
  int rank() const noexcept { return horo_process_set_rank(id_); }

  /// Number of ranks in the set.
  int size() const noexcept { return horo_process_set_size(id_); }

  /// Whether the calling rank is a member.
  bool included() const noexcept { return rank() >= 0; }

  /// The set's ranks, ascending. Blocks: no. Fails: NOT_FOUND, NOT_INITIALIZED, FORKED.
  std::vector<int> ranks() const {
    std::vector<int> ranks(size() < 0 ? 0 : static_cast<std::size_t>(size()));
    check(horo_process_set_ranks(id_, ranks.data()));
    return ranks;
  }

  friend bool operator==(ProcessSet, ProcessSet) = default;

 private:
  friend class Job;

  // Barriers use a fixed number of names in turn, so that many may run at once and no table grows.
  // All ranks count in the same way. Ranks that had joined have not counted, so all ranks then
  // start from 0 again.
  static constexpr std::size_t kMostSets = 256;
  static constexpr std::uint32_t kBarrierNames = 1024;
  static inline std::array<std::atomic<std::uint32_t>, kMostSets> barriers{};

  std::string next_barrier() const {
    return "horo.barrier." + std::to_string(barriers[id_ % kMostSets]++ % kBarrierNames);
  }

  void begin_barriers() const noexcept { barriers[id_ % kMostSets] = 0; }

  horo_set id_ = HORO_WORLD;
};

/// The ranks that take part in an operation, and its group.
struct Where {
  ProcessSet set = {};
  /// Tensors of a group become ready together: none runs before all ranks have submitted all of
  /// them. The name and the number of members are the same on all ranks. Empty: no group.
  std::string group = {};
  std::uint32_t group_size = 0;
};

}  // namespace v1
}  // namespace horo
