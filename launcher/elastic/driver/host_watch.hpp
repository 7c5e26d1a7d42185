// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/loop/loop.hpp"
#include "discovery/host.hpp"

namespace horo::launcher {

/// The pause between the end of one question for hosts and the next one.
inline constexpr Duration kHostWatchPause = std::chrono::seconds(1);

/// Asks for the hosts of an elastic job again and again, on a thread of its own, so that a script
/// that hangs or takes long keeps nothing else waiting. Thread: the loop's.
class HostWatch {
 public:
  /// Runs on the watch's thread, one call at a time. It ends early, with any error, when `cancel`
  /// becomes readable. Whatever it uses outlives the watch.
  using Ask = std::function<Result<discovery::HostSet>(int cancel)>;

  struct Handlers {
    /// The hosts differ from those of the answer before.
    std::function<void(const discovery::HostSet& hosts)> on_hosts;
    /// A question failed, and the one before had an answer. The last hosts stay.
    std::function<void(const Error& error)> on_failure;
  };

  /// `before`: the last answer, so that on_hosts is called only when something differs. `loop`
  /// outlives the watch. Fails: unavailable.
  static Result<std::unique_ptr<HostWatch>> start(Loop& loop, discovery::HostSet before, Ask ask,
                                                  Handlers handlers,
                                                  Duration pause = kHostWatchPause);
  /// No handler is called any more. Blocks: until the thread has ended, which the cancelled
  /// question does not delay.
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

 private:
  struct State;

  explicit HostWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace horo::launcher
