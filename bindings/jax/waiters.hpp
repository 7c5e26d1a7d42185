// SPDX-License-Identifier: Apache-2.0
// Threads that wait for operations and then run what XLA has put behind them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>

#include "base/mutex.hpp"

namespace horo::jax {

/// Runs each task on a thread at once: an idle one, or a new one. A limit on the threads could make
/// ranks wait for each other for ever, because a task may end only after another one has run.
/// The threads end with the process, so an object of this class is never destroyed.
/// Thread: any.
class Waiters {
 public:
  /// Fails: with false, and the task does not run (a limit on the number of threads, or no memory).
  bool run(std::function<void()> task);

 private:
  void work(std::function<void()> task);

  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_ HORO_GUARDED_BY(mutex_);
  std::size_t idle_ HORO_GUARDED_BY(mutex_) = 0;  ///< Threads that no task was counted for.
};

}  // namespace horo::jax
