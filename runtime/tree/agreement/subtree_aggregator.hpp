// SPDX-License-Identifier: Apache-2.0
// One process set at one leader: collects what is ready on its own host and in the subtrees of its
// children until all of them have it, and takes entries from above into its host's log.
// No sockets, no clock, no threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "runtime/tree/agreement/arrivals.hpp"
#include "runtime/tree/agreement/carried_inputs.hpp"
#include "runtime/tree/agreement/entry_queue.hpp"
#include "runtime/tree/agreement/host_log.hpp"
#include "runtime/tree/agreement/known_names.hpp"
#include "runtime/tree/agreement/redeclarations.hpp"
#include "runtime/tree/agreement/subtree_update.hpp"
#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// Thread: owner.
class SubtreeAggregator {
 public:
  static constexpr std::size_t kOwn = 0;  ///< Source 0 is this host, 1 + i its i-th child.

  /// `members` of the set by source; `host` is null when this host has none.
  SubtreeAggregator(SetId set, std::vector<RankRanges> members, HostLog* host,
                    CarriedInputs inputs = CarriedInputs());

  // From below. Fails: protocol (the source sends what it cannot have; it is out of step).

  Status ready(std::size_t source, const Ids& ids);
  Status declare(std::size_t source, std::vector<Declaration>&& tensors);
  Status joined(std::size_t source, const RankRanges& ranks);
  Status leave(std::size_t source, const RankRanges& ranks);

  // Children tell of arrivals, and give the inputs of small sums, before a tensor is complete.
  ArrivalNotes& arrivals() { return arrivals_; }

  CarriedInputs& inputs() { return inputs_; }

  /// The name that has an agreed number; null: none has.
  const std::string* name_of(std::uint32_t number) const;

  /// Takes what this host has completed, unless `depth` entries are still to be run here: tensors
  /// that become ready meanwhile travel together.
  Status look(std::uint64_t depth, TimePoint now);

  /// Returns what has become complete in the whole subtree since the last call.
  SubtreeUpdate take_update();

  /// An entry from above. Fails: protocol, or as the host's log.
  Status accept(const LogEntry& entry);

  /// Moves accepted entries into the host's log, as far as there is room.
  Status publish() { return queue_ ? queue_->publish() : Status(); }

  /// The sequence number that the next entry must have.
  std::uint64_t next_sequence() const { return next_; }

  const RankRanges& members(std::size_t source) const { return sources_[source].members; }

  HostLog* host() const { return host_; }

 private:
  using Source = SubtreeSource;
  using Declared = DeclaredAgain;
  using NewName = UnnumberedName;
  using Agreed = NumberedName;

  bool complete(std::uint64_t marks) const;
  Result<Agreed*> find(std::size_t source, std::uint32_t number);
  Status mark(std::size_t source, std::uint32_t number);
  void mark(std::size_t source, Agreed& tensor);
  Status look_at(const Completed& completed, TimePoint now);
  Status declare_own(TensorId id);
  Status apply_held_back();
  Status declare_one(std::size_t source, Declaration&& tensor);
  Status declare_new(std::size_t source, Declaration&& tensor);
  Status declare_agreed(std::size_t source, Declaration&& tensor);
  void send_up(Agreed& tensor);
  void send_if_complete(const std::string& name, NewName& tensor);
  void send_all_complete();
  Status define(const Definition& definition);
  Status evict(Agreed& tensor);
  Result<QueuedEntry> translate(const LogEntry& entry);
  Failure out_of_step(std::size_t source, std::string_view what) const;

  const SetId set_;
  HostLog* const host_;
  std::optional<EntryQueue> queue_;  ///< If there is a host.
  std::vector<Source> sources_;
  std::uint64_t all_ = 0;     ///< Bits of the sources that have members.
  std::uint64_t absent_ = 0;  ///< Bits of those whose members have all joined.
  std::uint64_t next_ = 0;

  std::vector<Agreed> tensors_;                           ///< By the place of their number.
  std::unordered_map<std::uint32_t, Declared> declared_;  ///< By number.
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::unordered_map<std::string, NewName> new_names_;
  /// By this host's number: the agreed number under which the root knows what all members here
  /// agreed to last; kNoNumber: there is none.
  std::vector<std::uint32_t> agreed_;
  Redeclarations redeclarations_;
  ArrivalNotes arrivals_;
  CarriedInputs inputs_;

  SubtreeUpdate update_;
  std::vector<Completed> completed_;
};

}  // namespace horo::runtime::tree
