// SPDX-License-Identifier: Apache-2.0
// This host's place in the tree of leaders, which agrees for process sets with members on several
// hosts (docs/design/tree.md).
#pragma once

#include <map>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "runtime/board/board.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/tree/agreement/board_log.hpp"
#include "runtime/tree/connections/leader_service.hpp"
#include "runtime/tree/connections/start_leader.hpp"

namespace horo::runtime {

/// Owns the leader's connections to other hosts. Only the host's first rank leads and has some.
/// Thread: the holder of the progress token, except for what says otherwise.
class TreeLink {
 public:
  /// `memory` outlives this.
  explicit TreeLink(HostMemory& memory) : memory_(memory), state_(memory) {}

  /// As leave().
  ~TreeLink() { leave(); }

  TreeLink(const TreeLink&) = delete;
  TreeLink& operator=(const TreeLink&) = delete;

  /// On the host's first rank: connects to the other leaders; `options` need no rules. Blocks:
  /// until they have come. Fails: as tree::start_leader_service; invalid_argument
  /// (HORO_CACHE_CAPACITY is too small for so many ranks).
  Status start(const bootstrap::Meeting& meeting, tree::TreeOptions options,
               const Deadline& deadline);

  /// This rank leads its host.
  bool leads() const { return service_ != nullptr; }

  /// A rank was lost. Thread: any.
  bool has_loss() { return state_.loss().has_value(); }

  // -- On the leader ----------------------------------------------------------------------------

  /// From now on all hosts of the set agree on its log. `board` outlives the set; null: no member
  /// is on this host.
  void lead(SetId set, std::span<const Rank> ranks, Board* board);
  void forget(SetId set);

  /// A board of this host may have news. Does nothing on other ranks. Thread: any.
  void look();

  /// The same after `delay`, together with what becomes new until then. Thread: any.
  void look_soon(Duration delay);

  /// On the root: all hosts of the set change its tuning. Does nothing elsewhere. Thread: any.
  void change_tuning(SetId set, const Tuning& tuning) { service_->change_tuning(set, tuning); }

  /// Answers questions about stalls from now on. Before the first set; `examiner` outlives this.
  void examine_by(tree::StallExaminer& examiner) { state_.examine_by(examiner); }

  /// Asks all hosts; the root's examiner gets the answers. Thread: any.
  void ask(tree::StallQuestion question) { service_->ask(std::move(question)); }

  /// Describes this host's slowest connection to another leader. On the leader. Thread: any.
  tree::LinkFacts links() const { return service_->links(); }

  /// Leaves the tree; boards are not touched any more. Idempotent.
  void leave();

 private:
  HostMemory& memory_;
  tree::BoardState state_;
  std::map<SetId, std::unique_ptr<tree::BoardLog>> logs_;
  std::unique_ptr<tree::LeaderService> service_;  ///< Null on ranks that do not lead.
};

}  // namespace horo::runtime
