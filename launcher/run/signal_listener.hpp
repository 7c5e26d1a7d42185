// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/loop/loop.hpp"

namespace horo::launcher {

/// The signals that a launcher program passes to its job. A signal that a user's shell or a wrapper
/// script delivers twice within 300 ms counts once. Thread: the loop's.
class SignalListener {
 public:
  struct Handlers {
    std::function<void(int)> on_signal;  ///< SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2.
    Task on_suspend;                     ///< SIGTSTP, from a terminal's Ctrl-Z.
  };

  /// A signal that was ignored when the program started (nohup) stays ignored.
  /// Fails: unavailable.
  static Result<std::unique_ptr<SignalListener>> make(Loop& loop, Handlers handlers);

 private:
  explicit SignalListener(Handlers handlers) : handlers_(std::move(handlers)) {}

  void receive(int number);
  bool is_echo(int number);

  const Handlers handlers_;
  std::vector<Subscription> signals_;
  int last_number_ = 0;
  TimePoint last_time_{};
};

/// Makes writes to a closed pipe fail instead of ending this process.
void survive_broken_pipes();

/// The number of the signal that --signal chooses; 0: none.
int number_of(NoticeSignal notice);

/// Whether the signal usually ends a program, and somebody has sent it.
bool ends_programs(int number);

/// Stops this process as Ctrl-Z stops a program that does not handle it. Returns when it continues.
/// The kernel ignores the request where no shell could continue the process.
void stop_this_process();

}  // namespace horo::launcher
