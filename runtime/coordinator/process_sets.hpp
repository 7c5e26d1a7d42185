// SPDX-License-Identifier: Apache-2.0
// The process sets of a rank: which there are, and one progress over all of them. Each has a board
// and an engine of its own, so a slow set holds up no other and overlapping sets cannot wait for
// each other in a circle.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/coordinator/board.hpp"
#include "runtime/coordinator/engine.hpp"
#include "runtime/coordinator/host_memory.hpp"
#include "runtime/coordinator/hosts.hpp"
#include "runtime/operation.hpp"

namespace horo::runtime {

inline constexpr SetId kWorld{0};

/// One process set as this rank knows it; the engine is there if this rank is a member, the board
/// also if it speaks for its host's members.
struct ProcessSet {
  SetId id;
  std::vector<Rank> ranks;  ///< Ascending.
  std::unique_ptr<Board> board;
  std::vector<std::unique_ptr<Board>> rings;  ///< Of its backend, if it spans hosts.
  SetId between_hosts;  ///< Its number in the tree, which is never used again; 0: not in it.
  std::unique_ptr<Engine> engine;

  /// Position of `rank` in the set; -1: not a member.
  int rank_of(Rank rank) const;

  bool member() const { return engine != nullptr; }

  /// This rank is no member, but leads those on its host.
  bool led() const { return engine == nullptr && board != nullptr; }
};

/// Thread: the holder of the progress token, but for what says otherwise.
class ProcessSets {
 public:
  ProcessSets(HostMemory& host, OperationTable& operations, const Clock& clock);
  ~ProcessSets();

  /// The job has other hosts; before the first set. `hosts` outlives the sets.
  void connect(Hosts& hosts) { hosts_ = &hosts; }

  /// Called before the operations of this rank end because another has ended.
  void on_loss(std::function<void(Rank)> tell) { tell_loss_ = std::move(tell); }

  /// Adds a set under the lowest free number, the same on all ranks that add and remove in the same
  /// order. Blocks: until the memory is there, and all members are if they are on several hosts.
  /// Fails: out_of_memory, peer_lost, resource_exhausted; as Hosts::connect.
  Result<SetId> add(std::vector<Rank> ranks);

  /// Forgets a set that has no operation in flight any more and that no other thread uses.
  void remove(SetId id);

  /// Null when there is none. Thread: any; it stays valid until it is removed.
  ProcessSet* find(SetId id) const {
    return id.index() < kMostSets ? sets_[id.index()].load(std::memory_order_acquire) : nullptr;
  }

  /// The set of exactly these ranks, null when there is none. Thread: any.
  ProcessSet* find(std::span<const Rank> ranks) const;

  /// Numbers in use, ascending. Thread: any.
  std::vector<SetId> ids() const;

  /// Calls `use` with each set that this rank is in.
  template <typename Use>
  void for_members(Use use) const {
    for_sets([&use](ProcessSet& set) {
      if (set.member()) use(set);
    });
  }

  /// The same; keeps sets from being removed meanwhile. The world never is. Thread: any.
  template <typename Use>
  void for_members_from_outside(Use use) const {
    for_sets_from_outside([&use](const ProcessSet& set) {
      if (set.member()) use(set);
    });
  }

  /// As for_members_from_outside, with every set. Thread: any.
  template <typename Use>
  void for_all_from_outside(Use use) const {
    for_sets_from_outside([&use](const ProcessSet& set) { use(set); });
  }

  // -- Progress over all sets -------------------------------------------------------------------

  /// Does what can be done now, a bounded piece of each set; true when anything moved.
  bool progress();

  /// Entries are begun and not done, in any set.
  bool active() const;

  /// Of those entries, in all sets.
  std::uint64_t bytes_in_flight() const;

  /// An active set's backend tells nobody when it can move on.
  bool polls() const;

  /// Whether a look would find something to do or to finish. Thread: any.
  bool has_news() const;

  /// A tensor is ready and in no entry yet, in any set. Thread: any.
  bool has_ready() const;

  /// Such a tensor could be put into one now. Thread: any.
  bool can_cut() const;

  /// A loss has ended all operations; nothing moves any more. Thread: any.
  bool lost() const { return lost_.load(std::memory_order_seq_cst); }

  /// Who was lost and how, once the board is poisoned. Thread: any.
  std::string loss_message() const;

  /// The connections of a set are broken and nobody has said yet who was lost: look again soon.
  bool broken() const { return !cut_off_.is_never(); }

  /// Takes back what is not agreed, in all sets; true when no operation of this rank is left, and
  /// for who leads, nothing more comes from other hosts.
  bool withdraw();

  /// Wakes members whose share is lacking, in all sets. Returns how many.
  int wake_laggards();

  /// Sums over all sets since the beginning. Thread: any.
  struct Totals {
    std::uint64_t tensors = 0, entries = 0, bytes = 0, fused_bytes = 0, direct_bytes = 0;
  };

  Totals totals() const;

 private:
  Status populate(ProcessSet& set);
  void enter(ProcessSet& set) const;
  Status populate_spanning(ProcessSet& set, Members members);
  bool observe_poison();
  /// Whether a board that this rank leads without being a member has something for other hosts.
  bool has_led_news() const;
  void watch_breakdown();

  template <typename Use>
  void for_sets(Use use) const {
    const auto end = end_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < end; ++i) {
      auto* set = sets_[i].load(std::memory_order_seq_cst);
      if (set != nullptr) use(*set);
    }
  }

  template <typename Use>
  void for_sets_from_outside(Use use) const {
    const bool removable = end_.load(std::memory_order_acquire) > 1;
    if (removable) visitors_.fetch_add(1, std::memory_order_seq_cst);
    for_sets(use);
    if (removable) visitors_.fetch_sub(1, std::memory_order_release);
  }

  HostMemory& host_;
  OperationTable& operations_;
  const Clock& clock_;
  Hosts* hosts_ = nullptr;                ///< Null: one host is all.
  std::function<void(Rank)> tell_loss_;   ///< Empty: nobody wants to know.
  Deadline cut_off_ = Deadline::never();  ///< When this rank calls itself lost.
  std::array<std::atomic<ProcessSet*>, kMostSets> sets_{};
  std::atomic<std::size_t> end_{0};  ///< Past the highest number in use.
  mutable std::atomic<std::uint32_t> visitors_{
      0};                    ///< Threads that look at sets without the token.
  std::uint32_t added_ = 0;  ///< Sets, ever.
  std::vector<std::unique_ptr<ProcessSet>> owned_;
  Totals removed_;
  bool acknowledged_ = false;
  TimePoint end_silent_at_{};
  std::atomic<bool> lost_{false};
};

}  // namespace horo::runtime
