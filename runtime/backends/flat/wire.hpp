// SPDX-License-Identifier: Apache-2.0
// What carries messages between the ranks of a set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.hpp"

namespace horo::runtime {

struct Message {
  int peer = 0;           ///< Position in the set.
  std::uint64_t tag = 0;  ///< One message with it between two ranks in one direction.
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
};

/// A message under way; forgets it when it is destroyed. Thread: one at a time.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Until its memory may be used again. Fails: peer_lost (also when the peer is silent for too
  /// long), cancelled (interrupted).
  virtual Status wait() = 0;
};

/// Thread: any. Blocks: only Pending::wait(). The memory of messages outlives it.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual Result<std::unique_ptr<Pending>> send(const Message& message) = 0;
  virtual Result<std::unique_ptr<Pending>> receive(const Message& message) = 0;
  /// Ends all waits, now and later, with cancelled.
  virtual void interrupt() = 0;
  /// After interrupt(): closes all connections, so that the peers see it and no byte arrives any
  /// more.
  virtual void hang_up() = 0;
};

}  // namespace horo::runtime
