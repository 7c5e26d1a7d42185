// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/elastic/membership_messages.hpp"
#include "base/strong.hpp"

namespace horo::launcher {

/// The calls of one host's workers, from the worker until the launcher has answered. After a loss
/// all workers call within a moment, and their agent sends one message for all of them. Values
/// only: it knows no clock and no connection.
///
///   of each worker: busy -> gathered -> sent -> busy
///                   any -> gathered            it calls (again)
class CallGathering {
 public:
  /// The worker has been started: its calls count.
  void begin(Rank worker) { workers_.try_emplace(number(worker)); }

  /// The worker has ended. The launcher hears nothing of it any more.
  void end(Rank worker) { workers_.erase(number(worker)); }

  bool has(std::uint32_t worker) const { return workers_.contains(worker); }

  /// False: no such worker lives here. A further call of a worker replaces the one before.
  bool add(const elastic::MembershipCall& call);

  /// Whether some call has to be sent.
  bool any() const;

  /// Whether no other worker can call before the launcher has answered, so that waiting for further
  /// calls is of no use.
  bool complete() const;

  /// The calls that have to be sent, by worker. They count as sent.
  std::vector<elastic::MembershipCall> take();

  /// The launcher has answered. An answer to an earlier call than the last one changes nothing.
  void answered(std::uint32_t worker, std::uint32_t attempt);

 private:
  enum class Stage : std::uint8_t { busy, gathered, sent };

  struct Worker {
    Stage stage = Stage::busy;
    elastic::MembershipCall call;  ///< The last one.
  };

  static std::uint32_t number(Rank worker) { return static_cast<std::uint32_t>(worker.value()); }

  std::map<std::uint32_t, Worker> workers_;  ///< Those that live.
};

}  // namespace horo::launcher
