// SPDX-License-Identifier: Apache-2.0
// Notices when the connection to a peer ends. Gloo tells the operations that wait for their first
// byte from that peer, or for their turn to be sent, and nobody else: an operation that has moved
// some of its bytes would wait for ever. So a message that never comes waits for each peer.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include "base/mutex.hpp"

namespace horo::runtime {

/// Owns a thread that sleeps until a connection ends.
class ClosedPeers {
 public:
  /// No other message may have this tag.
  static constexpr std::uint64_t kTag = std::numeric_limits<std::uint64_t>::max();

  /// `closed` is called on the thread, once for each peer. `posting` is held while something is
  /// posted to Gloo. Both outlive this.
  ClosedPeers(std::shared_ptr<gloo::Context> context, Mutex& posting,
              std::function<void(int peer)> closed);

  /// Blocks: until a call of `closed` that has begun returns.
  ~ClosedPeers();
  ClosedPeers(const ClosedPeers&) = delete;
  ClosedPeers& operator=(const ClosedPeers&) = delete;

 private:
  using Message = gloo::transport::UnboundBuffer;

  void run();
  /// Has a new message wait for each peer that is not known to be closed; false: no one is left, or
  /// this ends.
  bool post();
  bool sleep();

  const std::shared_ptr<gloo::Context> context_;
  Mutex& posting_;
  const std::function<void(int)> closed_;
  char byte_ = 0;
  std::vector<bool> open_;  ///< By peer. The thread's, once it runs.
  Mutex mutex_;
  std::shared_ptr<Message> message_ HORO_GUARDED_BY(mutex_);
  bool ending_ HORO_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace horo::runtime
