// SPDX-License-Identifier: Apache-2.0
// A mutex whose use the compiler checks. Members marked HORO_GUARDED_BY(m) may be touched only
// while `m` is held; clang's -Wthread-safety refuses anything else, and the lint test `locks` runs
// it. Under g++ the marks have no effect.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define HORO_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define HORO_THREAD_ANNOTATION(x)
#endif

/// The member may be read and written only while the mutex is held.
#define HORO_GUARDED_BY(mutex) HORO_THREAD_ANNOTATION(guarded_by(mutex))
/// The function may be called only while the mutex is held.
#define HORO_REQUIRES(mutex) HORO_THREAD_ANNOTATION(requires_capability(mutex))
/// The function may be called only while the mutex is not held by the calling thread.
#define HORO_EXCLUDES(mutex) HORO_THREAD_ANNOTATION(locks_excluded(mutex))
/// The function returns this mutex.
#define HORO_RETURNS(mutex) HORO_THREAD_ANNOTATION(lock_returned(mutex))

namespace horo {

/// Thread: any. Lock it by MutexLock.
class HORO_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  ~Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() HORO_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }

  void unlock() HORO_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

  bool try_lock() HORO_THREAD_ANNOTATION(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a mutex until the end of its scope. Waits are written as loops over a condition, in the
/// function that holds the lock, because the analysis does not follow a lock into a lambda.
class HORO_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HORO_THREAD_ANNOTATION(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}

  ~MutexLock() HORO_THREAD_ANNOTATION(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  /// Releases the mutex before the end of the scope; lock() takes it again.
  void unlock() HORO_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }

  void lock() HORO_THREAD_ANNOTATION(acquire_capability()) { lock_.lock(); }

  /// Releases the mutex until `changed` is notified. May return early, so the caller must check its
  /// condition again.
  void wait(std::condition_variable& changed) { changed.wait(lock_); }

  template <typename Rep, typename Period>
  std::cv_status wait_for(std::condition_variable& changed,
                          const std::chrono::duration<Rep, Period>& longest) {
    return changed.wait_for(lock_, longest);
  }

  template <typename TimeClock, typename TimeDuration>
  std::cv_status wait_until(std::condition_variable& changed,
                            const std::chrono::time_point<TimeClock, TimeDuration>& end) {
    return changed.wait_until(lock_, end);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace horo
