// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "launcher/protocol/protocol.hpp"

namespace horo::launcher::protocol {

/// Messages to and from one agent, either over a descriptor or relayed by other agents.
/// Thread: the loop's. Handlers run from the loop and may destroy the stream.
class MessageStream {
 public:
  struct Handlers {
    std::function<void(const Message&)> on_message;
    /// The other side has closed, or what it sent makes no sense (protocol). Once; nothing follows.
    std::function<void(const Status&)> on_end;
    /// has_room() of a DescriptorStream is true again.
    std::function<void()> on_room;
    /// Drops what comes before the other side's hello, such as a login shell's greeting.
    bool skip_until_hello = false;
    /// Gets what is dropped. What comes in one piece with the hello is left out.
    std::function<void(std::string_view)> on_stray{};
    /// Gets type and payload of each frame, not decoded; then on_message is not called.
    std::function<void(std::string_view)> on_frame;
  };

  virtual ~MessageStream() = default;

  /// Queues `message`; fails like encode.
  virtual Status send(const Message& message) = 0;
};

}  // namespace horo::launcher::protocol
