// SPDX-License-Identifier: Apache-2.0
// The log of one process set at the root: tensors that all hosts have become its entries. No
// sockets, no clock, no threads.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runtime/tensor/fusion_plan.hpp"
#include "runtime/tree/agreement/subtree_update.hpp"
#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// How entries are cut; the same for all process sets.
struct CutRules {
  std::uint64_t fusion_threshold = 64 << 20;
  std::uint64_t depth = 2;         ///< Entries in flight.
  std::size_t most_words = 32768;  ///< Ids and row counts of one entry.
  std::size_t most_tensors = 1024;
  std::size_t most_names = kMostTensors;  ///< Names kept, as long as idle ones can be evicted.
  Duration cycle{};  ///< How long an entry waits for more tensors; 0: not at all.
};

/// Thread: owner.
class RootLog {
 public:
  RootLog(SetId set, RankRanges members, const CutRules& rules);

  /// Takes what has become complete in the whole tree. Fails: protocol.
  Status add(SubtreeUpdate&& news, TimePoint now);

  /// All members change their tuning at the next entry that is cut. Replaces a change that has not
  /// been cut.
  void change_tuning(const Tuning& tuning) { new_tuning_ = tuning; }

  /// The host that paces the set has run `entries` entries.
  void done(std::uint64_t entries);

  /// Appends the entries that can be cut now, to be accepted everywhere in this order.
  void cut(TimePoint now, std::vector<LogEntry>& out);

  /// When the tensor was in an entry last; TimePoint::min(): never.
  TimePoint last_cut(const std::string& name) const;

  /// When cut() would find more without anything having been added.
  TimePoint next_cut() const;

 private:
  struct Tensor {
    std::string name;
    std::uint32_t number = 0;
    bool numbered = false;
    bool uniform = false;  ///< `agreed` is there, and all of it goes together.
    Variants agreed;
    std::uint64_t bytes = 0;
    std::uint64_t key = 0;
    TimePoint cut = TimePoint::min();
    std::uint32_t pending = 0;
    std::list<Tensor*>::iterator use;  ///< In `by_use_`, if it is numbered.
  };

  struct Pending {
    Tensor* tensor = nullptr;
    std::string error;  ///< A MismatchReport as bytes; empty when the tensor is to be run.
    Signature signature;
    bool whole = false;    ///< All members declare it; none has joined instead.
    std::string inputs{};  ///< All members', or empty.
  };

  Status add(const Declaration& declaration);
  Status add_ready(std::uint32_t number, std::string&& inputs);
  void leave(const RankRanges& ranks);
  void record_agreed(Tensor& tensor, Variants&& variants);
  Result<Variants> resolve(const Tensor& tensor, const Variants& variants) const;
  static std::string refusal(const std::string& name, const Signature& signature,
                             const RankRanges& absent);
  void cut_one(LogEntry& entry, TimePoint now);
  /// Sets `taken_`: the pending tensors of the next entry.
  void choose_tensors();
  void remove_taken();
  void carry(LogEntry& entry);
  void add_pending(Pending pending);
  void number(Tensor& tensor);
  Tensor* find_idle();
  void put_rows(const Tensor& tensor, std::vector<std::uint64_t>& rows) const;
  LogEntry entry_of(LogKind kind);
  void cut_tuning(std::vector<LogEntry>& out);

  /// Hosts whose members have all joined do not know the tensor's current signature. `joined_` may
  /// not have them yet: ranks that join are reported after the tensors that became complete by it.
  static bool must_define(const Pending& pending) {
    return !pending.tensor->numbered || !pending.whole;
  }

  bool has_room() const { return next_ - done_ < rules_.depth; }

  bool may_cut(TimePoint now) const;

  const SetId set_;
  const RankRanges members_;
  CutRules rules_;

  std::unordered_map<std::string, std::unique_ptr<Tensor>> tensors_;
  std::vector<Tensor*> by_place_;  ///< By the place of their number.
  std::list<Tensor*> by_use_;      ///< Those that have a number; the one in the last entry is last.
  std::deque<Pending> pending_;
  std::optional<Tuning> new_tuning_;
  TimePoint pending_since_{};
  RankRanges joined_;
  RankRanges joined_last_;
  RankRanges leaving_;
  RankRanges left_;
  std::uint64_t next_ = 0;
  std::uint64_t done_ = 0;

  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> taken_;
};

}  // namespace horo::runtime::tree
