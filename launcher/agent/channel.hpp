// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/agent/conduit.hpp"

namespace horo::launcher::protocol {

/// Messages over a pair of descriptors (or one socket), non-blocking. Does not own them.
/// Thread: the loop's. Handlers run from the loop and may destroy the channel.
class Channel final : public Conduit {
 public:
  /// Fails: unavailable.
  static Result<std::unique_ptr<Channel>> open(Loop& loop, int in, int out, Handlers handlers);
  ~Channel() override;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Status send(const Message& message) override;
  /// The same for a frame, type and payload, that somebody else has encoded.
  void send_frame(std::string_view frame);
  /// Whether output should be read on: less than a fixed amount waits for the other side.
  bool has_room() const;
  /// While not wanted nothing is read.
  void want_input(bool wanted);
  /// Calls `task` when all that was sent has been handed to the system, or cannot be.
  void on_drained(Task task);

 private:
  class Impl;
  explicit Channel(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace horo::launcher::protocol
