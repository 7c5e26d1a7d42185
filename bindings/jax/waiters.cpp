// SPDX-License-Identifier: Apache-2.0
#include "bindings/jax/waiters.hpp"

#include <exception>
#include <list>
#include <pthread.h>
#include <thread>
#include <utility>

namespace horo::jax {

namespace {

/// Starts a thread that is never joined, and keeps it.
template <typename Body>
void start_thread(Body body) {
  static Mutex mutex;
  static auto* const threads = new std::list<std::thread>();
  std::list<std::thread> one(1);
  one.front() = std::thread(std::move(body));
  pthread_setname_np(one.front().native_handle(), "horo-jax");
  const MutexLock lock(mutex);
  threads->splice(threads->end(), one);
}

}  // namespace

bool Waiters::run(std::function<void()> task) {
  try {
    {
      const MutexLock lock(mutex_);
      if (idle_ > 0) {
        tasks_.push_back(std::move(task));
        --idle_;
        changed_.notify_one();
        return true;
      }
    }
    start_thread([this, first = std::move(task)] { work(first); });
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void Waiters::work(std::function<void()> task) {
  for (;;) {
    task();
    task = nullptr;
    MutexLock lock(mutex_);
    ++idle_;
    while (tasks_.empty()) lock.wait(changed_);
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
}

}  // namespace horo::jax
