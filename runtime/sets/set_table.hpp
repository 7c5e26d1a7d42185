// SPDX-License-Identifier: Apache-2.0
// The process sets of a rank, by number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/race_point.hpp"
#include "base/strong.hpp"
#include "runtime/backends/hierarchical/backend_table.hpp"
#include "runtime/board/board.hpp"
#include "runtime/engine/engine.hpp"

namespace horo::runtime {

inline constexpr SetId kWorld{0};

/// One process set as this rank knows it. A member has a board and an engine. The host's first rank
/// has a board too where it leads the set's members without being one.
struct ProcessSet {
  SetId id;
  std::vector<Rank> ranks;  ///< Ascending.
  std::unique_ptr<Board> board;
  BackendTable backends = BackendTable::of_one_host();
  std::vector<std::unique_ptr<SetRegion>> rings;  ///< For its backend's steps inside this host.
  SetId between_hosts;  ///< Its number in the tree, which is never used again; 0: not in the tree.
  std::unique_ptr<Engine> engine;
  std::atomic<int> device{-1};  ///< It has this rank's tensors in device memory; -1: none so far.

  /// Position of `rank` in the set; -1: not a member.
  int rank_of(Rank rank) const;

  bool member() const { return engine != nullptr; }

  /// This rank leads the set's members on its host, and is none of them.
  bool led() const { return engine == nullptr && board != nullptr; }
};

/// Owns the sets of this rank. Threads without the progress token may look at sets while another
/// thread removes one. Thread: any, except for what says otherwise.
class SetTable {
 public:
  /// Null when there is none. The set stays valid until it is removed.
  ProcessSet* find(SetId id) const {
    return id.index() < kMostSets ? sets_[id.index()].load(std::memory_order_acquire) : nullptr;
  }

  /// The set of exactly these ranks; null when there is none.
  ProcessSet* find(std::span<const Rank> ranks) const;

  /// Numbers in use, ascending.
  std::vector<SetId> ids() const;

  /// Calls `use` with each set; sets are not removed meanwhile.
  template <typename Use>
  void for_all_from_outside(Use use) const {
    const auto end = end_.load(std::memory_order_acquire);
    race_point();
    // The world is never removed. Sets that are added from here on are not looked at.
    if (end <= 1) return for_first(end, use);
    const Visit visit(*this);
    for_first(end, use);
  }

  /// Calls `use` with one set, if it exists; it is not removed meanwhile.
  template <typename Use>
  void use_from_outside(SetId id, Use use) const {
    const Visit visit(*this);
    if (const auto* const set = find(id); set != nullptr) use(*set);
  }

  /// The same with each set that this rank is in.
  template <typename Use>
  void for_members_from_outside(Use use) const {
    for_all_from_outside([&use](const ProcessSet& set) {
      if (set.member()) use(set);
    });
  }

  // -- Thread: the holder of the progress token -------------------------------------------------

  template <typename Use>
  void for_all(Use use) const {
    for_first(end_.load(std::memory_order_acquire), use);
  }

  template <typename Use>
  void for_members(Use use) const {
    for_all([&use](ProcessSet& set) {
      if (set.member()) use(set);
    });
  }

  /// The lowest number that is free; none: kMostSets sets exist.
  std::optional<SetId> free_id() const;

  /// Adds a set under its number, which is free.
  void insert(std::unique_ptr<ProcessSet> set);

  /// Takes a set out. Blocks: while other threads look at sets. Null when there is none.
  std::unique_ptr<ProcessSet> take(SetId id);

 private:
  /// No set is removed while one lives.
  class Visit {
   public:
    explicit Visit(const SetTable& table) : table_(table) {
      table_.visitors_.fetch_add(1, std::memory_order_seq_cst);
    }

    ~Visit() { table_.visitors_.fetch_sub(1, std::memory_order_release); }

    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    const SetTable& table_;
  };

  template <typename Use>
  void for_first(std::size_t end, Use use) const {
    for (std::size_t i = 0; i < end; ++i) {
      auto* const set = sets_[i].load(std::memory_order_seq_cst);
      if (set != nullptr) use(*set);
    }
  }

  std::array<std::atomic<ProcessSet*>, kMostSets> sets_{};
  std::atomic<std::size_t> end_{0};                 ///< Past the highest number in use.
  mutable std::atomic<std::uint32_t> visitors_{0};  ///< Threads that look at sets from outside.
  std::vector<std::unique_ptr<ProcessSet>> owned_;
};

}  // namespace horo::runtime
