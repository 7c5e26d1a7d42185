// SPDX-License-Identifier: Apache-2.0
// Waiting without the interpreter lock, also while the interpreter ends.
#pragma once

#include "bindings/python/fastpath/python.hpp"

namespace horo::fastpath {

/// Takes the lock again that PyEval_SaveThread() gave away. If the interpreter has begun to end,
/// Python before 3.14 ends the calling thread with pthread_exit(), which unwinds the frames of all
/// callers. Frames of torch are among them when the call comes from a hook of backward, and those
/// must not be unwound: the process would abort. So such a thread stays here for good, and the end
/// of the process ends it.
void take_interpreter_lock(PyThreadState* state);

/// Notes, while it exists, that its thread waits for an operation.
/// Thread: the one that holds the interpreter lock.
class Waiter {
 public:
  Waiter();
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// The identifiers of the waiting threads, as threading.get_ident() returns them: a new list, or
  /// nullptr with an exception.
  static PyObject* threads();

 private:
  unsigned long thread_;  // NOLINT(google-runtime-int): as PyThread_get_thread_ident()
  Waiter* next_;
};

}  // namespace horo::fastpath
