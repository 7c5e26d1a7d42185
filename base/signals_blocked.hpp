// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <ctime>
#include <pthread.h>
#include <thread>
#include <utility>

namespace horo {

/// Blocks signals for the calling thread, and for threads that it starts meanwhile. The signals of
/// a thread's own faults (SIGSEGV and the like) stay unblocked, so that fault handlers still work.
/// Writing to a closed connection raises SIGPIPE, which ends a program that does not expect it; a
/// SIGPIPE raised meanwhile is discarded.
class SignalsBlocked {
 public:
  enum class Which { most, pipe };

  explicit SignalsBlocked(Which which = Which::most) : pipe_was_pending_(pipe_pending()) {
    sigset_t set = only(SIGPIPE);
    if (which == Which::most) {
      sigfillset(&set);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&set, fault);
    }
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }

  ~SignalsBlocked() {
    if (!pipe_was_pending_ && pipe_pending()) {
      const sigset_t pipe = only(SIGPIPE);
      const timespec at_once{};
      sigtimedwait(&pipe, nullptr, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  static sigset_t only(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
  }

  static bool pipe_pending() {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
  }

  const bool pipe_was_pending_;
  sigset_t before_{};
};

namespace detail {

/// In a quiet thread: the signal mask of the thread that started it.
inline thread_local const sigset_t* mask_of_starter = nullptr;

}  // namespace detail

/// Starts a thread of the library with all signals blocked. Signals belong to the program, whose
/// handlers may not expect to run in a library's thread. Throws std::system_error when the user or
/// the control group has as many threads as it may have.
template <class Body>
std::thread start_quiet_thread(Body&& body) {
  const SignalsBlocked blocked;
  return std::thread([before = blocked.before(), body = std::forward<Body>(body)]() mutable {
    detail::mask_of_starter = &before;
    body();
  });
}

/// While it lives, a quiet thread accepts the signals that its starter accepted. Needed around code
/// of the program that may start processes, because these inherit the mask.
class SignalsOfStarter {
 public:
  SignalsOfStarter() {
    if (detail::mask_of_starter != nullptr)
      pthread_sigmask(SIG_SETMASK, detail::mask_of_starter, &quiet_);
  }

  ~SignalsOfStarter() {
    if (detail::mask_of_starter != nullptr) pthread_sigmask(SIG_SETMASK, &quiet_, nullptr);
  }

  SignalsOfStarter(const SignalsOfStarter&) = delete;
  SignalsOfStarter& operator=(const SignalsOfStarter&) = delete;

 private:
  sigset_t quiet_{};
};

}  // namespace horo
