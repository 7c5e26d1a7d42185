// SPDX-License-Identifier: Apache-2.0
// From the records of all ranks to operations: what each rank says of one log entry is put together
// by the entry's number.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/timeline_view/model.hpp"
#include "apps/timeline_view/rank_source.hpp"
#include "apps/timeline_view/steps.hpp"
#include "timeline/record.hpp"

namespace horo::apps {

/// Thread: owner. Memory: of entries that are not done on all ranks, and of tensors.
class EntryMatcher {
 public:
  enum class Clocks { aligned, unknown };

  /// `files`: of how many ranks there are records. Clocks that are not known to agree are moved as
  /// soon as they contradict each other.
  EntryMatcher(Sink& sink, std::size_t files, Clocks clocks = Clocks::unknown)
      : sink_(&sink), files_(files), clocks_(clocks) {}

  /// What is found from now on is another's.
  void give_to(Sink& sink) { sink_ = &sink; }

  void take(const RankSource& file, const timeline::Record& record);
  /// All files are still there.
  void finish();

 private:
  struct Key {
    std::uint16_t set = 0;
    std::uint64_t entry = 0;

    auto operator<=>(const Key&) const = default;
  };

  struct RankPart {
    std::int64_t arrived = 0;  ///< Its last tensor was submitted; 0: not seen.
    std::int64_t begun = 0;
    std::int64_t moved = 0;  ///< Nothing before it was under way any more.
    std::int64_t ended = 0;
    std::int64_t packed_ns = 0;  ///< Copying to a fusion buffer, within begun and ended.
    std::int64_t unpacked_ns = 0;
  };

  struct Pending {
    timeline::Begin what;
    std::vector<std::string> members;  ///< As many as the sink wants; the first at least.
    int namer = -1;                    ///< The rank they were taken from.
    int job_size = 0;
    std::map<int, RankPart> parts;
    std::size_t ended = 0;  ///< Of the parts.
  };

  struct RankState {
    const RankSource* file = nullptr;
    std::string host;
    std::int64_t offset = 0;          ///< Of the host.
    std::int64_t first = 0;           ///< Its records begin.
    std::int64_t last_submitted = 0;  ///< Any tensor.
    /// By set and tensor; 0: it is not waiting for its entry.
    std::unordered_map<std::uint64_t, std::int64_t> submitted;
    Key last{};  ///< Whose members follow.
    std::int64_t last_end = 0;
  };

  /// Set and name: hosts give tensors numbers of their own.
  using WaitKey = std::pair<std::uint16_t, std::string>;

  struct Waits {
    std::map<WaitKey, std::map<int, std::int64_t>> since;  ///< Then by rank.
    /// By set: nobody can say what these have not submitted, as they have joined or wait for what
    /// has no name any more.
    std::map<std::uint16_t, std::set<int>> unclear;
  };

  RankState& state_of(const RankSource& file);
  void submit(RankState& state, int rank, const timeline::Record& record, std::int64_t now);
  void begin(const RankSource& file, const timeline::Record& record, std::int64_t now);
  void add_members(const RankSource& file, const timeline::Record& record);
  void mismatch(const RankSource& file, const timeline::Record& record, std::int64_t now);
  void copied(const RankSource& file, const timeline::Record& record);
  void end(const RankSource& file, const timeline::Record& record, std::int64_t now);
  bool whole(const Key& key, const Pending& pending) const;
  void align(const Pending& pending);
  void give(Pending& pending);
  void tell_unfinished();
  Waits waits_at_the_end() const;
  std::optional<Unfinished> judge_wait(const WaitKey& key, const std::map<int, std::int64_t>& since,
                                       const std::set<int>& unclear) const;

  Sink* sink_;
  const std::size_t files_;
  const Clocks clocks_;
  std::map<int, RankState> ranks_;
  std::map<std::string, std::int64_t> offsets_;  ///< By host: added to its clock.
  std::map<std::uint16_t, std::set<int>> members_;
  std::map<Key, Pending> pending_;
  std::optional<std::int64_t> lost_;  ///< The first rank saw the job end.
  int stepper_ = -1;                  ///< The rank whose steps are counted.
  StepFinder steps_;
};

}  // namespace horo::apps
