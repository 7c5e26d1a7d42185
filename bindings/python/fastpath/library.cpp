// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/library.hpp"

namespace horo::fastpath {

namespace {

Package& connected() {
  static Package package;
  return package;
}

/// Stores the address of a function. False, with an exception, when there is none.
template <class Function>
bool take_address(PyObject* functions, const char* name, Function& function) {
  PyObject* number = PyDict_GetItemString(functions, name);
  if (number == nullptr) {
    PyErr_Format(PyExc_KeyError, "there is no address of %s", name);
    return false;
  }
  function = reinterpret_cast<Function>(PyLong_AsVoidPtr(number));
  return PyErr_Occurred() == nullptr;
}

bool take_addresses(PyObject* functions, LibraryFunctions& library) {
  return take_address(functions, "horo_declare", library.declare) &&
         take_address(functions, "horo_submit", library.submit) &&
         take_address(functions, "horo_submit_with", library.submit_with) &&
         take_address(functions, "horo_submit_all", library.submit_all) &&
         take_address(functions, "horo_poll", library.poll) &&
         take_address(functions, "horo_await", library.await) &&
         take_address(functions, "horo_await_all", library.await_all) &&
         take_address(functions, "horo_release", library.release) &&
         take_address(functions, "horo_wait_stream", library.wait_stream);
}

}  // namespace

const Package& package() {
  return connected();
}

bool need(Py_ssize_t wanted, Py_ssize_t count, const char* function) {
  if (count == wanted) return true;
  PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, not %zd", function, wanted, count);
  return false;
}

PyObject* connect(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(3, count, "connect")) return nullptr;
  Package made;
  if (!PyDict_Check(arguments[0]) || !PyDict_Check(arguments[1])) {
    PyErr_SetString(PyExc_TypeError, "connect() takes two dictionaries and BY_KNOBS");
    return nullptr;
  }
  if (!take_addresses(arguments[0], made.library)) return nullptr;
  made.handles = arguments[1];
  made.pending = PyDict_GetItemString(made.handles, "PENDING");
  made.by_knobs = arguments[2];
  if (made.pending == nullptr || !PyDict_Check(made.pending)) {
    PyErr_SetString(PyExc_TypeError, "horo._handles has no dictionary PENDING");
    return nullptr;
  }
  // They live as long as the process, like the library.
  Py_INCREF(made.handles);
  Py_INCREF(made.pending);
  Py_INCREF(made.by_knobs);
  connected() = made;
  return none();
}

}  // namespace horo::fastpath
