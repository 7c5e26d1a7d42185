// SPDX-License-Identifier: Apache-2.0
// The interface of what carries messages between the ranks of a set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.hpp"

namespace horo::runtime {

struct TransportMessage {
  int peer = 0;           ///< Position in the set.
  std::uint64_t tag = 0;  ///< Used for one message only between two ranks in one direction.
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t worker = 0;  ///< One thread posts a worker's messages and waits for them. Between
                             ///< two ranks its receives are posted in the order of the sends.
};

/// A message on its way. Destroying the object cancels nothing. Thread: one at a time.
class PendingMessage {
 public:
  virtual ~PendingMessage() = default;
  /// Blocks: until the message's memory may be used again. Fails: peer_lost (also when the peer is
  /// silent for too long), cancelled (interrupted).
  virtual Status wait() = 0;
};

/// Thread: any. Blocks: only PendingMessage::wait(). The memory of messages outlives it.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<std::unique_ptr<PendingMessage>> send(const TransportMessage& message) = 0;
  virtual Result<std::unique_ptr<PendingMessage>> receive(const TransportMessage& message) = 0;
  /// Ends all waits, now and later, with cancelled.
  virtual void interrupt() = 0;
  /// After interrupt(): closes all connections, which peers notice. No byte arrives after that.
  virtual void hang_up() = 0;
};

}  // namespace horo::runtime
