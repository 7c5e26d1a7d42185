// SPDX-License-Identifier: Apache-2.0
// Runs a job on a described cluster, from the first connection to the store until the last survivor
// of a failure knows of it, and counts. Everything is virtual time: the same on every machine.
//
// Real code: the store's table and the sizes of its messages, the tables of hosts, the exchange of
// addresses, the leaders, the choice of paths and algorithms, and the schedules with the loop that
// runs them. Modelled: links, the time that a processor takes for a message or a sum, the
// connections themselves, and steps inside a host. Bytes of tensors do not exist.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/flat/run_schedule.hpp"
#include "runtime/backends/hierarchical/hierarchy.hpp"
#include "runtime/bootstrap/store/host_table.hpp"
#include "runtime/simulator/cluster/cluster_report.hpp"
#include "runtime/simulator/cluster/cluster_world.hpp"
#include "runtime/simulator/cluster/sim_transport.hpp"
#include "runtime/simulator/cluster/sum_way.hpp"

namespace horo::runtime::sim {

/// Thread: owner.
class ClusterRun {
 public:
  explicit ClusterRun(const Cluster& cluster);
  ~ClusterRun();
  ClusterRun(const ClusterRun&) = delete;
  ClusterRun& operator=(const ClusterRun&) = delete;

  World& world() { return *world_; }

  const SimStore& store() const { return store_; }

  /// Once, first.
  StartReport start();
  /// Ranks that are there make another epoch's set, as a new process set does.
  void connect_set(std::uint64_t number);
  /// `begins`: by host, when its ranks begin. Nothing: all at once.
  SumReport sum(std::uint64_t bytes, const std::vector<Duration>& begins = {},
                std::uint64_t small_message = kUsualSmallMessage);
  /// The way that a sum of so many bytes takes.
  SumWay way_of(std::uint64_t bytes, std::uint64_t small_message) const;
  /// The last call: the job ends.
  LossReport lose(const HostFailure& failure);

  std::uint64_t connections() const;
  std::uint64_t most_connections() const;

 private:
  struct HostState {
    std::vector<int> ranks;
    int children = 0;           ///< Leaders below that have connected.
    Fiber* leader = nullptr;    ///< Waits for them.
    std::vector<Fiber*> local;  ///< Wait for the host's board.
    bool ready = false;
  };

  void spawn(std::function<void()> body);
  /// Runs events until all fibers have ended, and returns how long they took.
  Duration finish();
  void sleep(Duration time);
  void start_rank(int rank, StartReport& report);
  void meet_hosts(int host);
  void connect_leader(int host);
  void connect_rank(int rank, std::uint64_t number, StartReport& report);
  SumWay way_of(const Bucket& bucket) const;
  Duration run_sum(const Bucket& bucket, const std::vector<Duration>& begins, SumReport& report);
  void sum_whole(int rank, int worker, const Bucket& bucket);
  void sum_by_hosts(int rank, int worker, const Bucket& bucket);
  void run_segment(Transport& transport, const Mesh& mesh, const Bucket& bucket,
                   const ScheduleRun& run);
  Hierarchy hierarchy_of(int rank) const;
  std::uint64_t messages() const;

  const Cluster cluster_;
  std::unique_ptr<World> world_;
  Network& network_;
  SimStore store_;
  std::vector<int> members_;
  std::vector<int> host_of_;
  std::vector<HostState> hosts_;
  int owners_ = 0;  ///< Ranks of the smallest host.
  int most_local_ = 0;
  std::unique_ptr<SimWire> all_;                  ///< Between all ranks.
  std::vector<std::unique_ptr<SimWire>> across_;  ///< By local rank: between hosts.
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::size_t running_ = 0;
};

ClusterReport run_cluster(const Cluster& cluster);

}  // namespace horo::runtime::sim
