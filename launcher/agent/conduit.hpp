// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "launcher/agent/protocol.hpp"

namespace horo::launcher::protocol {

/// Messages to and from one agent, whatever they go through: a descriptor, or other agents.
/// Thread: the loop's. Handlers run from the loop and may destroy the conduit.
class Conduit {
 public:
  struct Handlers {
    std::function<void(const Message&)> on_message;
    /// The other side has closed, or what it sent makes no sense (protocol). Once; nothing follows.
    std::function<void(const Status&)> on_end;
    /// has_room() is true again.
    std::function<void()> on_room;
    /// Whatever comes before the other side's hello is dropped: a login shell may greet.
    bool noisy_start = false;
    /// In place of on_message: type and payload as they come, for somebody else to decode.
    std::function<void(std::string_view)> on_frame;
  };

  virtual ~Conduit() = default;

  /// Queues `message`; fails like encode.
  virtual Status send(const Message& message) = 0;
};

}  // namespace horo::launcher::protocol
