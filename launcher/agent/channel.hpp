// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/agent/protocol.hpp"

namespace horo::launcher::protocol {

/// Messages over a pair of descriptors (or one socket), non-blocking. Does not own them.
/// Thread: the loop's. Handlers run from the loop and may destroy the channel.
class Channel {
 public:
  struct Handlers {
    std::function<void(const Message&)> on_message;
    /// The other side has closed, or what it sent makes no sense (protocol). Once; nothing follows.
    std::function<void(const Status&)> on_end;
    /// has_room() is true again.
    std::function<void()> on_room;
    /// Whatever comes before the other side's hello is dropped: a login shell may greet.
    bool noisy_start = false;
  };

  /// Fails: unavailable.
  static Result<std::unique_ptr<Channel>> open(Loop& loop, int in, int out, Handlers handlers);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Queues `message`; fails like encode.
  Status send(const Message& message);
  /// Whether output should be read on: less than a fixed amount waits for the other side.
  bool has_room() const;
  /// Calls `task` when all that was sent has been handed to the system, or cannot be.
  void on_drained(Task task);

 private:
  class Impl;
  explicit Channel(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace horo::launcher::protocol
