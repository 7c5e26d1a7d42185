// SPDX-License-Identifier: Apache-2.0
// The hosts of a job over loopback: real nodes above simulated boards that run each entry at once.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/simulator/sim_log.hpp"
#include "runtime/simulator/world.hpp"
#include "runtime/tree/connections/leader_service.hpp"

namespace horo::links {

/// The board and state of one host, used by the thread of the test and the thread of the node.
class TestHost final : public runtime::tree::HostLog, public runtime::tree::HostState {
 public:
  explicit TestHost(const std::vector<Rank>& members) : log_(members, signatures_, 1000) {}

  void submit(Rank rank, const std::string& name, const runtime::Signature& signature);
  void join(Rank rank);
  void leave(Rank rank);

  /// Waits until `done` returns true; calls it after every entry and loss. Returns false after ten
  /// seconds.
  bool wait(const std::function<bool(TestHost&)>& done);

  /// Only inside `done`, which runs under the lock, or after the end of all activity.
  const std::vector<runtime::sim::SimRecord>& records() const { return log_.records(); }

  const std::optional<runtime::tree::Loss>& lost() const { return lost_; }

  void take_completed(std::vector<runtime::tree::Completed>& out) override;
  runtime::tree::LastSubmission last_submission(TensorId id) override;
  void show_arrivals(TensorId id, std::span<const runtime::tree::LastSubmission> others) override;
  runtime::tree::Declaration describe(TensorId id) override;
  Result<std::optional<TensorId>> define(std::string_view name,
                                         const runtime::Signature& signature) override;

  std::optional<std::string> inputs(TensorId /*id*/) override { return std::nullopt; }

  std::uint64_t take_place(TensorId /*first*/) override { return 0; }

  runtime::tree::RankRanges take_joined() override;
  Result<bool> publish(const runtime::tree::HostEntry& entry) override;
  std::uint64_t done() const override;

  std::optional<runtime::tree::Loss> loss() override;
  void lose(const runtime::tree::Loss& loss) override;

  bool wants_arrivals() override { return false; }

  runtime::tree::StallExaminer* examiner() override { return nullptr; }

  runtime::tree::RankRanges take_leaving() override;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  runtime::sim::SimSignatures signatures_;
  runtime::sim::SimLog log_;
  std::optional<runtime::tree::Loss> lost_;
};

/// The start parameters of all hosts of a test.
struct Cluster {
  explicit Cluster(int count, int ranks, int radix);

  runtime::tree::LeaderServiceParams params(int host) const;

  /// Starts the leader service of a host. Blocks until its neighbours have come.
  Result<std::unique_ptr<runtime::tree::LeaderService>> start(
      int host, const runtime::tree::LeaderServiceParams& params, TestHost& state,
      Duration limit = std::chrono::seconds(10));

  int radix;
  Duration heartbeat_timeout = std::chrono::seconds(5);
  std::vector<runtime::tree::HostRanks> hosts;
  std::vector<runtime::tree::LeaderListener> listeners;
  std::vector<std::uint16_t> parent_ports;  ///< Port to which each host connects.
};

/// All hosts of a cluster in this process.
struct Hosts {
  explicit Hosts(Cluster& cluster);

  TestHost& operator[](int host) { return *states[static_cast<std::size_t>(host)]; }

  runtime::tree::LeaderService& node(int host) { return *nodes[static_cast<std::size_t>(host)]; }

  void submit(Rank rank, const std::string& name, const runtime::Signature& signature);

  /// Waits until every host's log has this many entries.
  bool wait(std::size_t entries);

  std::vector<std::unique_ptr<TestHost>> states;
  std::vector<std::unique_ptr<runtime::tree::LeaderService>> nodes;
  int ranks_per_host;
};

runtime::Signature vector_of(std::int64_t count, runtime::DType dtype = runtime::DType::f32);

}  // namespace horo::links
