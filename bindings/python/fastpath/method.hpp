// SPDX-License-Identifier: Apache-2.0
// A method of a built-in type that takes no arguments, called many times.
#pragma once

#include "bindings/python/fastpath/python.hpp"

namespace horo::fastpath {

/// A method that an extension module has written in C is called directly, any other one by its
/// name. Thread: the one that holds the interpreter lock. Its references live as long as the
/// process.
class Method {
 public:
  /// Finds the method of `sample`'s type. False with an exception.
  bool find(PyObject* sample, PyObject* name);

  /// Calls it for an object of exactly the sample's type. Returns a new reference, or nullptr with
  /// an exception.
  PyObject* call(PyObject* object) const {
    if (without_arguments_ != nullptr) return without_arguments_(object, nullptr);
    if (with_keywords_ != nullptr) return with_keywords_(object, no_arguments_, nullptr);
    return PyObject_CallMethodObjArgs(object, name_, nullptr);
  }

 private:
  PyObject* name_ = nullptr;
  PyObject* no_arguments_ = nullptr;
  PyCFunction without_arguments_ = nullptr;
  PyCFunctionWithKeywords with_keywords_ = nullptr;
};

}  // namespace horo::fastpath
