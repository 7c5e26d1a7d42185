// SPDX-License-Identifier: Apache-2.0
// A leader with its connections and its thread, as each host of a job has one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/tree/connections/leader_connections.hpp"
#include "runtime/tree/leader/leader.hpp"

namespace horo::runtime::tree {

/// The service's thread reads the connections and keeps the time. A thread that has news of the
/// host's boards calls poke(), which sends at once what there is to send: nothing waits for the
/// service's thread. While idle, that thread wakes up for heartbeats only.
///
/// HostState and HostLog are called with the service's lock held, by its thread or by poke().
class LeaderService {
 public:
  /// Connects to the parent and waits for the children. Blocks: until `deadline`; stops early when
  /// `cancelled`. Fails: timed_out (names the hosts that have not connected), version_mismatch,
  /// permission_denied (another secret), unavailable, peer_lost (cancelled).
  static Result<std::unique_ptr<LeaderService>> start(LeaderServiceParams params,
                                                      LeaderListener listener, HostState& state,
                                                      const Deadline& deadline,
                                                      const std::function<bool()>& cancelled);
  /// As leave().
  ~LeaderService();
  LeaderService(const LeaderService&) = delete;
  LeaderService& operator=(const LeaderService&) = delete;

  // Thread: any.

  void add_set(SetId set, const RankRanges& members, HostLog* log);
  void remove_set(SetId set);

  /// Something may be new on this host.
  void poke();

  /// As poke(), but by the service's thread and after `delay`: for news that no rank waits for yet,
  /// so that later news can travel with it. Cheap while a call is pending.
  void poke_soon(Duration delay);

  /// As Leader::change_tuning().
  void change_tuning(SetId set, const Tuning& tuning);

  /// As Leader::ask().
  void ask(StallQuestion question);

  /// Says goodbye, sends what is left for at most a second, and ends the thread. Idempotent.
  void leave();

  LeaderCounters counters() const;

  /// Describes the slowest connection to a parent or child.
  LinkFacts links() const;

  /// How often the thread woke up.
  std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  LeaderService(LeaderServiceParams params, LeaderListener listener, HostState& state);
  Status connect_all(const Deadline& deadline, const std::function<bool()>& cancelled);
  void run();
  /// Waits for the connections or the bell, with the lock released, and handles what has arrived.
  void turn(Duration longest) HORO_REQUIRES(mutex_);
  void ring();

  const LeaderServiceParams params_;
  UniqueFd bell_;  ///< eventfd: something changed that the thread has not seen.

  mutable Mutex mutex_;
  LeaderConnections connections_ HORO_GUARDED_BY(mutex_);
  Leader leader_ HORO_GUARDED_BY(mutex_);
  bool leaving_ HORO_GUARDED_BY(mutex_) = false;

  std::atomic<std::uint64_t> wakes_{0};
  std::atomic<TimePoint> soon_{TimePoint::max()};  ///< When poke_soon() is due.
  std::thread thread_;
};

}  // namespace horo::runtime::tree
