// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.hpp"
#include "launcher/starters/dial_in/rank_link.hpp"

namespace horo::launcher {

/// One rank, and the agent that dials in to own it, as the launcher knows them.
///
///   awaited -> connected -> started -> ended -> finished
///                  |           |         \-------^       the agent has finished, or was lost
///                  |           \-> lost_started          the agent was lost
///                  \-> lost_unstarted                    the agent was lost
///
/// A rank that could not be started goes from connected to ended. Thread: the loop's.
class DialledRank {
 public:
  void connected(std::unique_ptr<RankLink> link);
  void started(TimePoint now);
  /// Its exit was reported, or it could not be started.
  void ended();
  /// Its agent has nothing left to do, or is lost.
  void agent_gone();

  /// Closes the connection, which ends the agent.
  void disconnect() { link_.reset(); }

  bool is_connected() const { return link_ != nullptr; }

  bool is_over() const;

  /// No message of its agent will come.
  bool is_silent() const { return link_ == nullptr || is_over(); }

  bool never_ran() const;

  bool exit_is_known() const { return state_ == State::ended || state_ == State::finished; }

  bool exit_is_missing() const { return state_ == State::started || state_ == State::lost_started; }

  TimePoint started_at() const { return started_at_; }

  /// Does nothing without a connection.
  void send(const protocol::Message& message);

 private:
  enum class State : std::uint8_t {
    awaited,
    connected,
    started,
    ended,
    finished,
    lost_unstarted,
    lost_started,
  };

  State state_ = State::awaited;
  std::unique_ptr<RankLink> link_;
  TimePoint started_at_{};
};

}  // namespace horo::launcher
