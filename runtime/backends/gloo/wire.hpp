// SPDX-License-Identifier: Apache-2.0
// Messages over Gloo's point-to-point transport.
#pragma once

#include <chrono>
#include <mutex>
#include <set>
#include <vector>

#include <gloo/context.h>

#include "base/clock.hpp"
#include "runtime/backends/flat/wire.hpp"

namespace horo::runtime {

class GlooWire final : public Wire {
 public:
  /// `members`: rank in the job by position, for messages. `timeout` of zero: none.
  GlooWire(std::shared_ptr<gloo::Context> context, std::vector<int> members, Duration timeout);

  Result<std::unique_ptr<Pending>> send(const Message& message) override;
  Result<std::unique_ptr<Pending>> receive(const Message& message) override;
  void interrupt() override;
  void hang_up() override;

 private:
  class Under;

  bool begin_wait(Under& message);
  void end_wait(Under& message);
  Failure lost(int peer, const char* why) const;

  const std::shared_ptr<gloo::Context> context_;
  const std::vector<int> members_;
  const std::chrono::milliseconds timeout_;
  std::mutex posting_;  ///< Gloo's own order of locks is not made for several posting threads.
  std::mutex mutex_;
  bool interrupted_ = false;  // HORO_GUARDED_BY(mutex_)
  std::set<Under*> waiting_;  // HORO_GUARDED_BY(mutex_)
};

}  // namespace horo::runtime
