// SPDX-License-Identifier: Apache-2.0
// Whole sessions on several hosts, each rank on a thread of its own: one board per host, real
// leaders and real connections over the loopback.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"
#include "runtime/session/session.hpp"
#include "runtime/simulator/delays.hpp"
#include "tests/rendezvous/support.hpp"
#include "tests/sim/sim_job.hpp"
#include "tests/spanning/runs.hpp"

namespace horo::spanning {

/// Ranks by host: {{0, 2}, {1}} puts ranks 0 and 2 on one host, rank 1 on another.
using Layout = std::vector<std::vector<int>>;

/// Ranks that fail to start a job, or are late.
struct BadStart {
  std::vector<int> absent;  ///< They never join.
  std::vector<int> late;    ///< They join 200 ms after the others.
  int threads = -1;         ///< Rank 0 can start no more threads than these; -1: any number.
};

/// The hosts of one job. Each run is an epoch. Threads wait at random race points: HORO_SIM_DELAYS
/// repeats them.
class TestHosts {
 public:
  explicit TestHosts(Layout layout);

  int size() const { return size_; }

  /// Runs `body(session, rank)` on a thread per rank and shuts the sessions down.
  void run(const std::function<void(runtime::Session&, int)>& body);

  /// The same without the shutdown: `body` owns the session.
  void run_raw(const std::function<void(std::unique_ptr<runtime::Session>, int)>& body);

  /// Starts a job that cannot start, with little time. Returns "rank N: message" of the first rank
  /// that fails; then all hosts learn that it was lost, as their agents would tell them.
  std::string fail_to_start(const BadStart& start);

  /// A rank of the run could not join: do not wait for it. Thread: any.
  bool failed() const { return failed_; }

  /// Does what a host's agent would do when one of its ranks ends.
  void poison(int host, const Poison& poison);

  /// Keys in the job's store now.
  std::size_t keys() { return server_.counts().keys; }

  runtime::SessionOptions options;

 private:
  runtime::bootstrap::Meeting meeting(int rank) const;
  void begin_epoch();

  const test::RandomDelays delays_{test::delays_from_environment()};
  const Layout layout_;
  int size_ = 0;
  Epoch epoch_{0};
  test::RunningServer server_;
  std::vector<UniqueFd> boards_;
  std::atomic<bool> failed_{false};
};

/// True when the operation is done; false: it hangs.
bool wait_for(runtime::Session& session, runtime::Operation& operation);

/// Sums `count` ones. Returns "" or what went wrong.
std::string sum(runtime::Session& session, SetId set, const std::string& name, std::int64_t count,
                int ranks);

}  // namespace horo::spanning
