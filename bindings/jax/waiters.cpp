// SPDX-License-Identifier: Apache-2.0
#include "bindings/jax/waiters.hpp"

#include <list>
#include <pthread.h>
#include <thread>
#include <utility>

namespace horo::jax {

namespace {

/// The threads of this process, which are never joined.
void keep(std::thread thread) {
  static Mutex mutex;
  static auto* const threads = new std::list<std::thread>();
  const MutexLock lock(mutex);
  threads->push_back(std::move(thread));
}

}  // namespace

void Waiters::run(std::function<void()> task) {
  bool starts = false;
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    if (idle_ == 0) {
      starts = true;
    } else {
      --idle_;
    }
  }
  if (!starts) {
    changed_.notify_one();
    return;
  }
  std::thread thread([this] { work(); });
  pthread_setname_np(thread.native_handle(), "horo-jax");
  keep(std::move(thread));
}

void Waiters::work() {
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty()) lock.wait(changed_);
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    const MutexLock lock(mutex_);
    ++idle_;
  }
}

}  // namespace horo::jax
