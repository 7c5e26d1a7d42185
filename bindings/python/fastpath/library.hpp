// SPDX-License-Identifier: Apache-2.0
// What the fast path shares with the Python package: the functions of the libhoro that
// horo/_native.py has loaded, and the objects of horo/_handles.py.
#pragma once

#include <horo/horo.h>

#include "bindings/python/fastpath/python.hpp"

namespace horo::fastpath {

/// Addresses in libhoro. This module links no libhoro, so there is never a second one.
struct LibraryFunctions {
  decltype(&horo_declare) declare = nullptr;
  decltype(&horo_submit) submit = nullptr;
  decltype(&horo_submit_with) submit_with = nullptr;
  decltype(&horo_submit_all) submit_all = nullptr;
  decltype(&horo_poll) poll = nullptr;
  decltype(&horo_await) await = nullptr;
  decltype(&horo_await_all) await_all = nullptr;
  decltype(&horo_release) release = nullptr;
  decltype(&horo_wait_stream) wait_stream = nullptr;
};

/// Thread: the one that holds the interpreter lock; constant after connect().
struct Package {
  LibraryFunctions library;
  PyObject* handles = nullptr;   ///< Dictionary of the module horo._handles.
  PyObject* pending = nullptr;   ///< Its PENDING.
  PyObject* by_knobs = nullptr;  ///< BY_KNOBS of horo._arguments.
};

/// The package of this process.
const Package& package();

/// connect(functions, handles, by_knobs): `functions` has the address of each function by its name.
PyObject* connect(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

/// Calls a function of horo._handles. It may find no function, and it may raise.
template <class... Arguments>
PyObject* call_handles(const char* name, Arguments*... arguments) {
  PyObject* function = PyDict_GetItemString(package().handles, name);
  if (function == nullptr) {
    PyErr_Format(PyExc_AttributeError, "horo._handles has no %s", name);
    return nullptr;
  }
  const Ref held = Ref::share(function);
  return PyObject_CallFunctionObjArgs(function, arguments..., nullptr);
}

/// An address that Python gives as a number, or a null pointer for None. It may raise.
inline void* as_pointer(PyObject* number) {
  return number == Py_None ? nullptr : PyLong_AsVoidPtr(number);
}

/// False, with a TypeError, unless a function was called with so many arguments.
bool need(Py_ssize_t wanted, Py_ssize_t count, const char* function);

}  // namespace horo::fastpath
