// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/interpreter_lock.hpp"

#include <pthread.h>
#include <unistd.h>

#ifdef __EXCEPTIONS
#error "compile with -fno-exceptions: pthread_cleanup_push() then needs no table for unwinding"
#endif

namespace horo::fastpath {

namespace {

/// The innermost waits, in the order in which they began. The interpreter lock protects the list.
Waiter* last_waiter = nullptr;

[[noreturn]] void stay(void*) {
  for (;;) pause();
}

}  // namespace

void take_interpreter_lock(PyThreadState* state) {
  pthread_cleanup_push(stay, nullptr);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}

Waiter::Waiter() : thread_(PyThread_get_thread_ident()), next_(last_waiter) {
  last_waiter = this;
}

Waiter::~Waiter() {
  Waiter** place = &last_waiter;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
}

PyObject* Waiter::threads() {
  Ref found(PyList_New(0));
  for (const Waiter* waiter = last_waiter; found && waiter != nullptr; waiter = waiter->next_) {
    const Ref thread(PyLong_FromUnsignedLong(waiter->thread_));
    if (!thread || PyList_Append(found.get(), thread.get()) < 0) return nullptr;
  }
  return found.release();
}

}  // namespace horo::fastpath
