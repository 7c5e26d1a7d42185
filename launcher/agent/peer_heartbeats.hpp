// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "base/loop/loop.hpp"
#include "base/result.hpp"
#include "launcher/protocol/heartbeat_timer.hpp"
#include "launcher/protocol/protocol.hpp"

namespace horo::launcher {

/// An agent's heartbeats to its peer, the launcher or the agent above it, and its watch over the
/// peer's. They begin with the first Prepare, which comes where the launcher is on another host.
/// Thread: the loop's.
class PeerHeartbeats {
 public:
  struct Hooks {
    Task send;                           ///< Sends a heartbeat.
    std::function<void(Error)> on_lost;  ///< The peer was silent for too long. Called once.
  };

  /// `loop` outlives it.
  PeerHeartbeats(Loop& loop, Hooks hooks);
  PeerHeartbeats(const PeerHeartbeats&) = delete;
  PeerHeartbeats& operator=(const PeerHeartbeats&) = delete;

  /// Begins unless it has begun.
  void begin(const protocol::Prepare& order);

  /// A message of the peer has come.
  void heard();

  /// A launcher that is stopped sends no heartbeats, and has announced that with SIGSTOP.
  void excuse_silence(const protocol::Signal& order);

  /// The peer is not stopped.
  void end_excuse();

 private:
  Loop& loop_;
  const Hooks hooks_;
  bool relayed_ = false;  ///< The peer is another agent, not the launcher.
  std::optional<HeartbeatTimer> timer_;
};

}  // namespace horo::launcher
