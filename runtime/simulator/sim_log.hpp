// SPDX-License-Identifier: Apache-2.0
// A simulated board: what one host's members of one process set have marked, and the log that came
// down. Same rules as the real one; bytes do not move.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/tree/agreement/host_log.hpp"

namespace horo::runtime::sim {

/// Signatures, each once; simulated ranks hold numbers.
class SimSignatures {
 public:
  std::uint32_t number_of(const Signature& signature);

  const Signature& at(std::uint32_t number) const { return all_[number]; }

 private:
  std::map<std::optional<Signature>, std::uint32_t, tree::SignatureOrder> numbers_;
  std::vector<Signature> all_;
};

/// One entry as a host's log has it.
struct SimRecord {
  tree::LogKind kind = tree::LogKind::work;
  std::vector<std::string> names;
  std::vector<std::uint64_t> rows;
  std::vector<std::string> inputs;
  std::string text;
  tree::RankRanges ranks;
  runtime::Tuning tuning;

  friend bool operator==(const SimRecord&, const SimRecord&) = default;
};

class SimLog final : public tree::HostLog {
 public:
  /// `members` of this host, ascending; `room`: entries that fit before some have been run.
  SimLog(std::vector<Rank> members, SimSignatures& signatures, std::size_t room);

  /// Marks a tensor for a member; false when it is in flight already.
  bool submit(Rank rank, const std::string& name, const Signature& signature);
  void join(Rank rank);

  void leave(Rank rank) { leaving_.add(rank); }

  /// Called with the number of each entry that is appended.
  void on_publish(std::function<void(std::uint64_t)> handler) { on_publish_ = std::move(handler); }

  /// Called with the number of each entry that has been run.
  void on_finish(std::function<void(std::uint64_t)> handler) { on_finish_ = std::move(handler); }

  /// The next entry has been run: its tensors can be submitted again.
  void finish_next();

  /// Everything that has been published, the oldest first.
  const std::vector<SimRecord>& records() const { return records_; }

  void forget_records() { records_.clear(); }

  bool has_member(Rank rank) const {
    return std::binary_search(members_.begin(), members_.end(), rank);
  }

  std::uint64_t published() const { return published_; }

  /// Something is marked by all members and not yet taken by the leader.
  bool has_news() const { return !completed_.empty() || !joining_.empty(); }

  /// By tensor: the ranks of other hosts that were last at its last entry.
  const std::map<std::string, std::vector<tree::LastSubmission>>& arrivals() const {
    return arrivals_;
  }

  /// Bytes that the tables hold.
  std::size_t bytes() const;

  void take_completed(std::vector<tree::Completed>& out) override;
  tree::LastSubmission last_submission(TensorId id) override;
  void show_arrivals(TensorId id, std::span<const tree::LastSubmission> others) override;
  tree::Declaration describe(TensorId id) override;
  /// A byte for each member, its rank, for names that begin with "tiny".
  std::optional<std::string> inputs(TensorId id) override;
  Result<std::optional<TensorId>> define(std::string_view name,
                                         const Signature& signature) override;

  std::uint64_t take_place(TensorId /*first*/) override { return 0; }

  tree::RankRanges take_joined() override;

  tree::RankRanges take_leaving() override { return std::exchange(leaving_, {}); }

  Result<bool> publish(const tree::HostEntry& entry) override;

  std::uint64_t done() const override { return done_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  struct Tensor {
    std::string name;
    std::uint64_t marks = 0;
    bool taken = false;    ///< Complete, and with the leader.
    bool changed = false;  ///< Somebody's signature is not the agreed one.
    Rank last;             ///< The member that marked it last.
  };

  struct Submission {
    std::uint32_t signature = kNone;
    std::uint32_t agreed = kNone;
  };

  std::size_t add(const std::string& name);
  void complete_if_all(std::size_t index);
  std::size_t index_of(Rank rank) const;

  Submission& submission(std::size_t tensor, std::size_t member) {
    return submissions_[tensor * members_.size() + member];
  }

  const std::vector<Rank> members_;
  const std::uint64_t all_;
  SimSignatures& signatures_;
  const std::size_t room_;
  std::function<void(std::uint64_t)> on_publish_;
  std::function<void(std::uint64_t)> on_finish_;

  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<Tensor> tensors_;
  std::vector<Submission> submissions_;
  std::vector<tree::Completed> completed_;
  std::uint64_t joined_ = 0;
  tree::RankRanges joining_;
  tree::RankRanges leaving_;
  std::vector<std::vector<TensorId>> in_flight_;  ///< Ids of entries that have not been run.
  std::vector<tree::LogKind> kinds_;
  std::vector<SimRecord> records_;
  std::map<std::string, std::vector<tree::LastSubmission>> arrivals_;
  std::uint64_t published_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace horo::runtime::sim
