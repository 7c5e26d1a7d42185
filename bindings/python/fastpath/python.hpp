// SPDX-License-Identifier: Apache-2.0
// Python's stable ABI of version 3.9, so that one binary serves every later Python 3.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <structmember.h>
#include <utility>

namespace horo::fastpath {

/// Arguments as an array, without a tuple. Python 3.10 made METH_FASTCALL part of the stable ABI;
/// in 3.9 it has the same value and meaning.
constexpr int kFastCall = 0x0080;
using FastFunction = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
using FastKeywordFunction = PyObject* (*)(PyObject* self, PyObject* const* arguments,
                                          Py_ssize_t count, PyObject* keywords);

/// An owned reference to a Python object, or none.
/// Thread: the one that holds the interpreter lock.
class Ref {
 public:
  Ref() = default;

  /// Takes over a new reference. nullptr, after a failed call, makes an empty one.
  explicit Ref(PyObject* owned) : object_(owned) {}

  static Ref share(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }

  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}

  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }

  /// Gives the reference to the caller.
  PyObject* release() { return std::exchange(object_, nullptr); }

  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// A new reference to None.
inline PyObject* none() {
  Py_INCREF(Py_None);
  return Py_None;
}

}  // namespace horo::fastpath
