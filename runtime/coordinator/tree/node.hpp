// SPDX-License-Identifier: Apache-2.0
// A leader with its TCP connections and its thread: what a host of a job has.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.hpp"
#include "base/kv/address.hpp"
#include "base/kv/auth.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/coordinator/tree/channel.hpp"
#include "runtime/coordinator/tree/leader.hpp"

namespace horo::runtime::tree {

/// Where a leader's children find it; made before anybody knows the addresses of all.
struct Listener {
  UniqueFd socket;
  std::uint16_t port = 0;

  /// At a free port of `address`, a number; empty: of every interface. Fails: invalid_argument,
  /// unavailable, io.
  static Result<Listener> open(const std::string& address);
};

struct NodeParams {
  LeaderParams leader;
  std::vector<HostRanks> hosts;
  kv::Address parent;  ///< Where the parent listens; unused at the root.
  kv::Secret secret{};
  std::uint32_t version = kVersion;  ///< Another only in tests.
};

/// Its thread reads the connections and keeps the time. Whoever has news of the host's boards
/// calls poke(), which sends at once what there is to send: nothing waits for the thread.
/// Idle, it wakes up for heartbeats only.
///
/// HostState and HostLog are called with the node's lock held, by the thread or by poke().
class Node final : public Outbox {
 public:
  /// Connects to the parent and waits for the children. Blocks: until `deadline`; stops early when
  /// `cancelled`. Fails: timed_out (naming the hosts that have not come), version_mismatch,
  /// permission_denied (another secret), unavailable, peer_lost (cancelled).
  static Result<std::unique_ptr<Node>> start(NodeParams params, Listener listener, HostState& state,
                                             const Deadline& deadline,
                                             const std::function<bool()>& cancelled);
  /// As leave().
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Thread: any.

  void add_set(SetId set, const RankRanges& members, HostLog* log);
  void remove_set(SetId set);

  /// Something may be new on this host.
  void poke();

  /// As poke(), but by the node's thread and after `delay`: for news that nobody waits for yet,
  /// which more of it may join. Cheap while one is due already.
  void poke_soon(Duration delay);

  /// As Leader::ask().
  void ask(Question question);

  /// Says goodbye, hands over what is still to be sent, for at most a second, and ends the thread.
  /// Idempotent.
  void leave();

  LeaderCounters counters() const;

  /// How often the thread woke up.
  std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

  /// With the lock held. Thread: the node's.
  void send(std::size_t link, std::string payload) override;

 private:
  struct Connection;

  Node(NodeParams params, Listener listener, HostState& state);
  Status connect_parent(const Deadline& deadline);
  Status meet(const Deadline& deadline, const std::function<bool()>& cancelled);
  void run();
  void turn(std::unique_lock<std::mutex>& lock, Duration longest);
  void accept_all();
  void read(Connection& connection);
  void take(Connection& connection, const std::string& payload);
  void write(Connection& connection);
  void flush();
  void drop(Connection& connection, const Error& why);
  void sweep();
  void ring();
  bool has_output() const;

  const NodeParams params_;
  const kv::Secret key_;
  Listener listener_;
  UniqueFd bell_;  ///< eventfd: something changed that the thread has not seen.

  mutable std::mutex mutex_;  // Guards everything below but the atomics.
  Leader leader_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> by_link_;
  bool parent_ = false;  ///< A connection to the parent is there, or being made.
  Error refusal_;        ///< Why a connection was refused: the last reason worth telling.
  bool leaving_ = false;

  std::atomic<std::uint64_t> wakes_{0};
  std::atomic<TimePoint> soon_{TimePoint::max()};  ///< When poke_soon() is due.
  std::thread thread_;
};

}  // namespace horo::runtime::tree
