// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/protocol/protocol.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// The ranks that an agent may speak of in a task. They are fixed, unless the task is elastic.
class TaskRanks {
 public:
  explicit TaskRanks(const AgentSpec& given);

  bool has(Rank number) const;

  bool is_elastic() const { return elastic_; }

  /// How many ranks may live there at once.
  int places() const { return places_; }

  const std::string& job_id() const { return job_id_; }

  /// Workers are to be started: the agent may speak of them from now on.
  void add(const std::vector<WorkerIdentity>& workers);
  /// The agent has reported the end of a rank, or that it cannot start. A worker's number is not
  /// used again, so the agent may not speak of it any more.
  void forget(Rank number);

 private:
  bool elastic_;
  int places_;
  std::vector<Rank> numbers_;  ///< In ascending order; see number_of().
  std::string job_id_;
};

/// One agent's part in one generation of the job, and how far it is. Values only: it says which
/// order of the launcher counts in which state, and whoever has the stream sends the order.
///
///   preparing -> ready -> begun -> stopping -> killing
///   preparing or ready -> cancelled      the agent is to have no ranks
///   preparing -> begun                   a spec that is not held
class AgentTask {
 public:
  enum class Stage : std::uint8_t { preparing, ready, begun, stopping, killing, cancelled };

  /// Standard input that came before the ranks could be described to the agent.
  struct EarlyInput {
    std::string bytes;
    bool fed = false;
    bool closed = false;
  };

  explicit AgentTask(const AgentSpec& given);

  Epoch epoch() const { return epoch_; }

  TaskRanks& ranks() { return ranks_; }

  const TaskRanks& ranks() const { return ranks_; }

  /// How many ports the agent has to find.
  int ports() const { return ports_; }

  /// Time for the ranks to end after a stop.
  Duration grace() const { return grace_; }

  /// Whether the agent waits for another task after this one.
  bool stays() const { return stays_; }

  Stage stage() const { return stage_; }

  bool has_begun() const;

  bool is_cancelled() const { return stage_ == Stage::cancelled; }

  // -- Orders. False: the order does not count in this state. -------------------------------------

  /// Ports and addresses are known.
  bool become_ready();
  bool begin();
  bool stop();
  bool kill();
  bool cancel();

  // The functions below take what the agent reports.

  /// The agent has taken the task with that number: its messages belong to it from now on. False:
  /// it is another task's number, or was told before.
  bool take(Epoch epoch);

  void finish(int survivors) { survivors_ = survivors; }

  /// Whether messages about ranks belong to this task.
  bool is_under_way() const { return taken_ && !survivors_; }

  bool is_finished() const { return survivors_.has_value(); }

  /// Valid once it has finished.
  int survivors() const { return *survivors_; }

  // The functions below return what is sent as soon as the stream is there.

  /// The spec, once, if the ranks are to be started as soon as the stream is there.
  std::optional<AgentSpec> take_spec() { return std::exchange(spec_, std::nullopt); }

  EarlyInput& early_input() { return early_input_; }

  /// Orders of an elastic task that came before the agent was described its ranks.
  std::vector<protocol::Message>& early_orders() { return early_orders_; }

 private:
  Epoch epoch_;
  TaskRanks ranks_;
  int ports_;
  Duration grace_;
  bool stays_;
  std::optional<AgentSpec> spec_;
  Stage stage_ = Stage::preparing;
  EarlyInput early_input_;
  std::vector<protocol::Message> early_orders_;
  bool taken_ = false;
  std::optional<int> survivors_;
};

}  // namespace horo::launcher
