// SPDX-License-Identifier: Apache-2.0
// One host of a simulated world: its leader, its logs, and a processor that handles one frame at a
// time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/simulator/world.hpp"

namespace horo::runtime::sim {

class SimHost final : public tree::HostState, public tree::Outbox {
 public:
  enum class Health { well, stopped, cut, dead };

  SimHost(World& world, int number);

  void add_set(SetId set, const tree::RankRanges& members);

  /// A payload has arrived from a neighbour.
  void receive(int from, std::string payload);

  /// The connection to a neighbour has ended.
  void hang_up(int from);

  /// Something on this host is new.
  void news();

  void set_health(Health health) { health_ = health; }

  Health health() const { return health_; }

  SimLog* log(SetId set) {
    const auto at = logs_.find(set);
    return at == logs_.end() ? nullptr : at->second.get();
  }

  tree::Leader& leader() { return leader_; }

  const std::optional<tree::Loss>& lost() const { return lost_; }

  /// Neighbours' numbers by link.
  int neighbour(std::size_t link) const;

  std::optional<tree::Loss> loss() override { return lost_; }

  void lose(const tree::Loss& loss) override {
    if (!lost_) lost_ = loss;
  }

  bool wants_arrivals() override { return world_.wants_arrivals_; }

  tree::StallExaminer* examiner() override { return nullptr; }

  void send(std::size_t link, std::string payload) override;

 private:
  struct Arrival {
    int from = 0;
    std::optional<std::string> payload;  ///< None: the connection has ended.
  };

  std::size_t link_of(int neighbour) const;

  bool works() const { return health_ == Health::well || health_ == Health::cut; }

  void pump();
  void handle(const Arrival& arrival);
  void run_later(SetId set);
  void has_run(SetId set, std::uint64_t entry);
  void set_timer();

  World& world_;
  const int number_;
  tree::Leader leader_;
  std::map<SetId, std::unique_ptr<SimLog>> logs_;
  std::map<SetId, std::uint64_t> running_;
  Health health_ = Health::well;
  std::optional<tree::Loss> lost_;
  std::deque<Arrival> inbox_;
  bool pumping_ = false;
  bool news_due_ = false;
  TimePoint busy_{};
  TimePoint timer_ = TimePoint::max();
};

}  // namespace horo::runtime::sim
