// SPDX-License-Identifier: Apache-2.0
// What has happened in an elastic job so far, for its reports. Pure: no clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/elastic/membership_messages.hpp"
#include "launcher/elastic/membership.hpp"

namespace horo::launcher {

struct WorkerHistory {
  std::string host;
  int slot = 0;
  std::optional<TimePoint> started{};
  std::optional<RankExit> exit{};
  std::string lost{};  ///< Why it is gone without an exit; empty: it is not.
};

struct GenerationHistory {
  FormedGeneration formed;
  std::vector<std::string> hosts;       ///< By rank.
  std::vector<std::string> left_hosts;  ///< In the order of formed.left.
  TimePoint at{};
  /// From the loss or the first call until the members had their answers; nothing in the first. The
  /// training stands still for longer: the ranks still connect, and compare their states.
  std::optional<Duration> new_ranks_after{};

  /// How training went on in it, if its rank 0 has told.
  struct Resumed {
    Duration stood_still{};                  ///< Since the last step that was complete.
    std::optional<std::int64_t> repeated{};  ///< Steps that are done again, if known.
  };

  std::optional<Resumed> resumed{};
};

/// "generation 3: 3 ranks, without worker 1 on host a (killed by signal 9); new ranks after 21 ms".
std::string describe_generation(const GenerationHistory& row);

/// "generation 3: training goes on after 57 ms; 1 step is repeated". It has row.resumed.
std::string describe_resumed(const GenerationHistory& row);

class ElasticHistory {
 public:
  /// Notes `event` and the orders that `state` has after it.
  void note(const MembershipState& state, const MembershipEvent& event, TimePoint now);

  /// Rank 0 of a generation tells. Returns the generation's row; null if it is not the current one,
  /// if the word comes from another rank, or if it has come before.
  const GenerationHistory* note(const elastic::TrainingResumed& resumed);

  const std::map<int, WorkerHistory>& workers() const { return workers_; }

  const std::vector<GenerationHistory>& generations() const { return generations_; }

 private:
  void note_orders(const MembershipState& state, TimePoint now);
  void note_lost(const MembershipState& state, const AgentLost& lost);

  std::map<int, WorkerHistory> workers_;
  std::vector<GenerationHistory> generations_;
};

}  // namespace horo::launcher
