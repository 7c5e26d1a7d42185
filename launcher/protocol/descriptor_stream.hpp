// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/protocol/message_stream.hpp"
#include "launcher/protocol/sealed_bytes.hpp"

namespace horo::launcher::protocol {

/// Messages over a pair of descriptors, or one socket. Makes them non-blocking; does not own them.
/// Thread: the loop's. Handlers run from the loop and may destroy the channel.
class DescriptorStream final : public MessageStream {
 public:
  /// With `seals` all bytes are encrypted. Fails: unavailable.
  static Result<std::unique_ptr<DescriptorStream>> open(Loop& loop, int in, int out,
                                                        Handlers handlers,
                                                        std::shared_ptr<SealedBytes> seals = {});
  ~DescriptorStream() override;
  DescriptorStream(const DescriptorStream&) = delete;
  DescriptorStream& operator=(const DescriptorStream&) = delete;

  Status send(const Message& message) override;
  /// Queues an encoded frame: type and payload.
  void send_frame(std::string_view frame);
  /// False while a fixed amount of bytes waits for the other side: read no more output then.
  bool has_room() const;
  /// While not wanted, nothing is read.
  void want_input(bool wanted);
  /// Calls `task` when the system has taken all that was sent, or will take no more.
  void on_drained(Task task);

 private:
  class Impl;
  explicit DescriptorStream(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace horo::launcher::protocol
