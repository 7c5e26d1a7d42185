// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

/// How one agent ends: the time that it has after it was told to, and the reasons that are known
/// when its carrier is gone. Thread: the loop's.
class AgentEnd {
 public:
  /// `give_up` runs when the agent has not ended in time. It may destroy this.
  AgentEnd(Loop& loop, std::string host, Task give_up)
      : loop_(loop), host_(std::move(host)), give_up_(std::move(give_up)) {}

  /// The agent was told to end, and has that much time. Replaces an earlier limit.
  void expect(Duration within) { timer_ = loop_.after(within, give_up_); }

  /// The agent may go on.
  void expect_nothing() { timer_.reset(); }

  /// The agent's own reason, or what is wrong with it. It counts more than the carrier's.
  void blame(Error reason) { fault_ = std::move(reason); }

  bool is_blamed() const { return fault_.has_value(); }

  /// The carrier is gone, for that reason.
  void carrier_gone(Error why) { gone_ = std::move(why); }

  bool is_carrier_gone() const { return gone_.has_value(); }

  /// Why it was lost. Valid once the carrier is gone.
  Error reason() const {
    if (!fault_) return *gone_;
    return Error(*fault_).context(fmt::format("agent on host '{}'", host_));
  }

 private:
  Loop& loop_;
  const std::string host_;
  const Task give_up_;
  Subscription timer_;
  std::optional<Error> fault_;
  std::optional<Error> gone_;
};

}  // namespace horo::launcher
