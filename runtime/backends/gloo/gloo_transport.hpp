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

  bool begin_wait(PostedMessage& message);
  void end_wait(PostedMessage& message);
  Failure lost(int peer, const char* why) const;

  const std::shared_ptr<gloo::Context> context_;
  const std::vector<int> members_;
  const std::chrono::milliseconds timeout_;
  Mutex posting_;  ///< Gloo's locks do not allow several threads to post at a time.
  Mutex mutex_;
  bool interrupted_ HORO_GUARDED_BY(mutex_) = false;
  std::set<PostedMessage*> waiting_ HORO_GUARDED_BY(mutex_);
};

}  // namespace horo::runtime
