// SPDX-License-Identifier: Apache-2.0
// From the records of all ranks to operations: what each rank says of one log entry is put together
// by the entry's number.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "apps/timeline_view/model.hpp"
#include "apps/timeline_view/rank_files.hpp"

namespace horo::apps {

/// Thread: owner. Memory: of entries that are not done on all ranks, and of tensors.
class EntryMatcher {
 public:
  /// `files`: how many ranks' files there are.
  EntryMatcher(Sink& sink, std::size_t files) : sink_(sink), files_(files) {}

  void take(const RankFile& file, const timeline::Record& record);
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
  };

  struct Pending {
    timeline::Begin what;
    std::string name;
    int job_size = 0;
    std::map<int, RankPart> parts;
  };

  struct RankState {
    std::map<std::pair<std::uint16_t, std::uint32_t>, std::int64_t> submitted;
    Key last{};  ///< Whose members follow.
    std::int64_t last_end = 0;
  };

  std::int64_t time_of(const RankFile& file, std::uint64_t ticks);
  void begin(const RankFile& file, const timeline::Record& record, std::int64_t now);
  void add_members(const RankFile& file, const timeline::Record& record);
  void end(const RankFile& file, const timeline::Record& record, std::int64_t now);
  bool whole(const Key& key, const Pending& pending) const;
  void align(const Pending& pending);
  void give(Pending& pending);

  Sink& sink_;
  const std::size_t files_;
  std::map<int, RankState> ranks_;
  std::map<int, std::string> hosts_;
  std::map<std::string, std::int64_t> offsets_;  ///< By host: added to its clock.
  std::map<std::uint16_t, std::set<int>> members_;
  std::map<Key, Pending> pending_;
};

}  // namespace horo::apps
