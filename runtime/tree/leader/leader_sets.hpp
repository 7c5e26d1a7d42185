// SPDX-License-Identifier: Apache-2.0
// The process sets of one leader: what is ready on its host and below goes up, entries of the log
// come down. At the root, what comes up becomes entries.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/tree/agreement/host_log.hpp"
#include "runtime/tree/agreement/root_log.hpp"
#include "runtime/tree/agreement/subtree_aggregator.hpp"
#include "runtime/tree/leader/leader_context.hpp"
#include "runtime/tree/leader/leader_links.hpp"

namespace horo::runtime::tree {

/// Thread: owner.
class LeaderSets {
 public:
  /// A frame about a set that this host did not have yet.
  struct EarlyFrame {
    std::size_t link = 0;
    std::string payload;
  };

  LeaderSets(const LeaderContext& context, LeaderLinks& links) : context_(context), links_(links) {}

  /// Before any rank here can submit to it. `log` is null without members here, else it outlives
  /// the set. Returns the frames that have to be handled again now.
  std::vector<EarlyFrame> add(SetId id, const RankRanges& members, HostLog* log);

  /// When no member submits any more; frames that are still on their way are dropped.
  void remove(SetId id);

  /// Handles a frame with a field `set`. Fails: protocol (by the sender's fault).
  template <typename F>
  Status receive(std::size_t link, F& frame, BytesView payload, TimePoint now) {
    now_ = now;
    HORO_TRY(auto* const set, find_for(link, frame.set, payload));
    if (set == nullptr) return {};
    HORO_TRY_STATUS(apply(*set, link, frame, payload));
    pass_on(frame.set, *set);
    return {};
  }

  /// Something may be new on this host.
  void on_news(TimePoint now);

  /// At the root: makes entries that had to wait for the cycle time.
  void on_time(TimePoint now);

  /// At the root: all members of a set change their tuning at the next entry that is made. Nothing
  /// happens if the set has been removed.
  void change_tuning(SetId id, const Tuning& tuning, TimePoint now);

  /// The child of this link has said goodbye: all ranks of its subtree leave.
  void on_child_left(std::size_t link, TimePoint now);

  /// The parent has said goodbye: for all hosts below, the parent's ranks have left.
  void on_parent_left(TimePoint now);

  /// A fault of this host since the last call.
  std::optional<Error> take_fault() { return std::exchange(fault_, std::nullopt); }

  /// Whether a trace at the root shows which ranks submit last.
  void show_arrivals(bool wanted);

  /// The set's members on this host (SubtreeAggregator::kOwn) or in a child's subtree; null: there
  /// is no such set here.
  const RankRanges* members(SetId id, std::size_t source) const;

  /// At the root: when the tensor was in an entry last; TimePoint::min(): never.
  TimePoint last_cut(SetId id, const std::string& name) const;

  /// When on_time() has something to do; TimePoint::max(): never.
  TimePoint next_cut() const;

 private:
  struct Set {
    std::unique_ptr<SubtreeAggregator> aggregator;
    std::unique_ptr<RootLog> root_log;  ///< At the root only.
    bool paces = false;                 ///< This host's speed limits the entries in flight.
    std::uint64_t reported = 0;         ///< Entries run here, as last sent to the root.
  };

  bool has_members(const Set& set, std::size_t link) const;
  Result<Set*> find_for(std::size_t link, SetId id, BytesView payload);
  Status apply(Set& set, std::size_t link, Declare& declare, BytesView payload);
  Status apply(Set& set, std::size_t link, Ready& ready, BytesView payload);
  Status apply(Set& set, std::size_t link, ReadyWithInputs& ready, BytesView payload);
  Status apply(Set& set, std::size_t link, Joined& joined, BytesView payload);
  Status apply(Set& set, std::size_t link, Leave& leave, BytesView payload);
  Status apply(Set& set, std::size_t link, Done& done, BytesView payload);
  Status apply(Set& set, std::size_t link, Arrived& arrived, BytesView payload);
  Status apply(Set& set, std::size_t link, LogEntry& entry, BytesView payload);
  void pass_on(SetId id, Set& set);
  Status make_entries(Set& set, SubtreeUpdate&& update);
  void send_up(SetId id, Set& set, SubtreeUpdate&& update);
  void send_declarations(SetId id, std::vector<Declaration>&& tensors);
  void send_arrivals(SetId id, std::vector<ArrivalsOf>&& tensors);
  void show_arrivals_here(Set& set, const std::vector<ArrivalsOf>& tensors);
  void note_arrivals(Set& set) const;
  Status send_down(Set& set, const LogEntry& entry, BytesView payload);
  void note(const Status& status);

  const LeaderContext& context_;
  LeaderLinks& links_;
  std::map<SetId, Set> sets_;
  std::set<SetId> removed_;
  std::vector<EarlyFrame> early_;
  std::size_t early_bytes_ = 0;
  std::optional<Error> fault_;
  bool shows_arrivals_ = false;
  TimePoint now_{};
};

}  // namespace horo::runtime::tree
