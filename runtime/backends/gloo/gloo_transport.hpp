// SPDX-License-Identifier: Apache-2.0
// Messages over Gloo's point-to-point transport.
#pragma once

#include <chrono>
#include <set>
#include <vector>

#include <gloo/context.h>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "runtime/backends/flat/transport.hpp"
#include "runtime/backends/gloo/closed_peers.hpp"

namespace horo::runtime {

class GlooTransport final : public Transport {
 public:
  /// `members`: rank in the job by position, for messages. `timeout` of zero: none.
  GlooTransport(std::shared_ptr<gloo::Context> context, std::vector<int> members, Duration timeout);

  Result<std::unique_ptr<PendingMessage>> send(const TransportMessage& message) override;
  Result<std::unique_ptr<PendingMessage>> receive(const TransportMessage& message) override;
  void interrupt() override;
  void hang_up() override;

 private:
  class PostedMessage;

  enum class Begun { waits, peer_is_closed, interrupted };

  Begun begin_wait(PostedMessage& message);
  bool end_wait(PostedMessage& message);
  Failure lost(int peer, const char* why) const;
  void peer_closed(int peer);

  const std::shared_ptr<gloo::Context> context_;
  const std::vector<int> members_;
  const std::chrono::milliseconds timeout_;
  Mutex posting_;  ///< Gloo's locks do not allow several threads to post at a time.
  Mutex mutex_;
  bool interrupted_ HORO_GUARDED_BY(mutex_) = false;
  std::set<PostedMessage*> waiting_ HORO_GUARDED_BY(mutex_);
  std::set<int> closed_ HORO_GUARDED_BY(mutex_);  ///< Peers whose connections have ended.
  ClosedPeers closed_peers_;                      ///< Last, because its thread uses the others.
};

}  // namespace horo::runtime
