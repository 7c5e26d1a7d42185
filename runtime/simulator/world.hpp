// SPDX-License-Identifier: Apache-2.0
// Many hosts in one process: the leaders of real jobs, on a virtual network and clock, above
// simulated boards. Faults come when they are asked for; everything random comes from one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/simulator/network.hpp"
#include "runtime/simulator/sim_log.hpp"
#include "runtime/tree/leader/leader.hpp"

namespace horo::runtime::sim {

struct WorldParams {
  std::vector<tree::HostRanks> hosts;
  int radix = 16;
  Epoch epoch{1};
  tree::CutRules rules;
  Duration heartbeat_timeout = std::chrono::seconds(5);
  LinkModel links;
  Duration run_time{};       ///< How long every entry runs, one after another.
  bool caller_runs = false;  ///< Instead, entries run until SimLog::finish_next().
  std::size_t room = 64;
  std::uint64_t seed = 1;
};

/// `count` hosts with `ranks` ranks each, in rank order.
std::vector<tree::HostRanks> even_hosts(int count, int ranks);

/// One payload that crossed a wire.
struct Crossing {
  int from = 0;
  int to = 0;
  std::string payload;
};

class SimHost;

/// Thread: owner.
class World {
 public:
  explicit World(WorldParams params);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const WorldParams& params() const { return params_; }

  Network& network() { return network_; }

  int size() const { return static_cast<int>(host_of_.size()); }

  int hosts() const { return static_cast<int>(params_.hosts.size()); }

  /// On every host at its own moment, up to `spread` from now; set 0 is there from the start.
  void add_set(SetId set, const tree::RankRanges& members, Duration spread = {});

  // Actions of ranks, now.

  bool submit(Rank rank, const std::string& name, const Signature& signature, SetId set = {});
  void join(Rank rank, SetId set = {});
  void leave(Rank rank, SetId set = {});

  /// Host 0 shows which ranks submit last.
  void want_arrivals(bool wanted) { wants_arrivals_ = wanted; }

  // Faults, now.

  void kill(int host);                                 ///< Its processes end: connections close.
  void cut(int host);                                  ///< Its cable: nothing arrives any more.
  void stop(int host);                                 ///< Frozen: connections stay open.
  void poison(int host, const tree::Loss& loss);       ///< Its agent says that a rank is lost.
  void inject(int to, int from, std::string payload);  ///< A frame that no leader sent.

  bool alive(int host) const;

  // Results.

  SimLog& log(int host, SetId set = {});
  bool has_log(int host, SetId set = {}) const;
  tree::Leader& leader(int host);
  const std::optional<tree::Loss>& loss(int host) const;  ///< That its boards are poisoned with.

  int host_of(Rank rank) const { return host_of_[rank.index()]; }

  /// Called after an entry of a set has been run on a host.
  void on_run(std::function<void(int host, SetId set, std::uint64_t number)> handler) {
    on_run_ = std::move(handler);
  }

  /// Called when an entry reaches a host's log.
  void on_publish(std::function<void(int host, SetId set, std::uint64_t number)> handler) {
    on_publish_ = std::move(handler);
  }

  /// Called with everything that is sent.
  void on_crossing(std::function<void(const Crossing&)> handler) {
    on_crossing_ = std::move(handler);
  }

  /// Runs for at most `limit` of virtual time; true when `done` came true.
  bool run(Duration limit, const std::function<bool()>& done);

 private:
  friend class SimHost;

  const WorldParams params_;
  bool wants_arrivals_ = false;
  Network network_;
  SimSignatures signatures_;
  std::vector<int> host_of_;
  std::vector<std::unique_ptr<SimHost>> hosts_;
  std::function<void(int, SetId, std::uint64_t)> on_run_;
  std::function<void(int, SetId, std::uint64_t)> on_publish_;
  std::function<void(const Crossing&)> on_crossing_;
};

}  // namespace horo::runtime::sim
