// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/operations.hpp"

#include <cstdint>

#include "bindings/python/fastpath/interpreter_lock.hpp"
#include "bindings/python/fastpath/library.hpp"

namespace horo::fastpath {

namespace {

constexpr long kRaised = -1;  // NOLINT(google-runtime-int): as PyLong_FromLong takes it

/// SLICE_MS of horo._handles, or -1 with an exception.
std::int64_t slice_ms() {
  PyObject* number = PyDict_GetItemString(package().handles, "SLICE_MS");
  if (number == nullptr) {
    PyErr_SetString(PyExc_AttributeError, "horo._handles has no SLICE_MS");
    return -1;
  }
  return PyLong_AsLongLong(number);
}

/// Calls `waits(milliseconds)`, without the interpreter lock, until it no longer returns
/// IN_PROGRESS. Signal handlers run between two calls, and before a success is reported: what they
/// raise comes before anything is released. After an error, no code runs here that could replace
/// the thread's last error. Returns kRaised with an exception.
template <class Wait>
long in_slices(Wait waits) {  // NOLINT(google-runtime-int): as above
  const auto slice = slice_ms();
  if (slice < 0) return kRaised;
  const Waiter waiter;
  horo_status status = HORO_IN_PROGRESS;
  while (status == HORO_IN_PROGRESS) {
    PyThreadState* const state = PyEval_SaveThread();
    status = waits(slice);
    take_interpreter_lock(state);
    if ((status == HORO_OK || status == HORO_IN_PROGRESS) && PyErr_CheckSignals() < 0)
      return kRaised;
  }
  return status;
}

/// Waits for one operation. It keeps the interpreter lock if the operation has completed.
long wait_for(horo_op op) {  // NOLINT(google-runtime-int): as above
  const auto& library = package().library;
  const auto status = library.poll(op);
  if (status != HORO_IN_PROGRESS) return status;
  return in_slices([&](std::int64_t slice) { return library.await(op, slice); });
}

/// The operation of a handle; 0, with an exception, if it is none.
horo_op as_operation(PyObject* handle) {
  const auto op = PyLong_AsUnsignedLongLong(handle);
  return PyErr_Occurred() == nullptr ? op : 0;
}

/// The only argument of a function, by its place or by its name.
PyObject* only_handle(PyObject* const* arguments, Py_ssize_t count, PyObject* keywords,
                      const char* function) {
  const auto named = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  if (count + named == 1) {
    if (named == 0) return arguments[0];
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "handle") == 0)
      return arguments[0];
  }
  PyErr_Format(PyExc_TypeError, "%s() takes one argument, handle", function);
  return nullptr;
}

/// Ends a successful operation and returns its result, the first part of its entry in PENDING.
PyObject* take_result(PyObject* handle, horo_op op, PyObject* entry) {
  Ref result = Ref::share(PyTuple_GetItem(entry, 0));
  if (PyDict_DelItem(package().pending, handle) < 0) PyErr_Clear();  // another thread took it
  package().library.release(op);
  return result.release();
}

horo_status submit_buffers(const RecordFields& record, const Buffers& buffers, horo_op* slot) {
  const auto& library = package().library;
  if (buffers.device < 0)
    return library.submit(record.tensor, buffers.source, buffers.target, slot);
  horo_submission submission = HORO_SUBMISSION_INIT;
  submission.tensor = record.tensor;
  submission.in = buffers.source;
  submission.out = buffers.target;
  submission.memory = HORO_MEMORY_DEVICE;
  submission.device = buffers.device;
  submission.stream = buffers.stream;
  return library.submit_with(&submission, slot);
}

}  // namespace

PyObject* submit_record(PyObject* object, RecordFields& record, Buffers buffers) {
  // The slot receives the handle as well: a caller that a signal handler interrupts finds it there.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): ctypes gives addresses as numbers.
  auto* const slot = reinterpret_cast<horo_op*>(record.address);
  if (submit_buffers(record, buffers, slot) == HORO_OK) {
    record.handle = *slot;
    return PyLong_FromUnsignedLongLong(*slot);
  }
  const Ref source(PyLong_FromVoidPtr(const_cast<void*>(buffers.source)));
  const Ref target(PyLong_FromVoidPtr(buffers.target));
  if (!source || !target) return nullptr;
  if (buffers.device < 0) return call_handles("submit_again", object, source.get(), target.get());
  const Ref device(PyLong_FromLong(buffers.device));
  const Ref stream(PyLong_FromVoidPtr(buffers.stream));
  if (!device || !stream) return nullptr;
  return call_handles("submit_at_again", object, source.get(), target.get(), device.get(),
                      stream.get());
}

namespace {

PyObject* submit_given(PyObject* object, const Buffers& buffers) {
  RecordFields* const record = as_record(object);
  if (record == nullptr) {
    PyErr_SetString(PyExc_TypeError, "a submission takes a Record");
    return nullptr;
  }
  return PyErr_Occurred() == nullptr ? submit_record(object, *record, buffers) : nullptr;
}

}  // namespace

PyObject* submit(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(3, count, "submit")) return nullptr;
  return submit_given(arguments[0],
                      {.source = as_pointer(arguments[1]), .target = as_pointer(arguments[2])});
}

PyObject* submit_at(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(5, count, "submit_at")) return nullptr;
  return submit_given(arguments[0], {.source = as_pointer(arguments[1]),
                                     .target = as_pointer(arguments[2]),
                                     .device = static_cast<int>(PyLong_AsLong(arguments[3])),
                                     .stream = as_pointer(arguments[4])});
}

PyObject* wait(PyObject*, PyObject* handle) {
  const auto op = as_operation(handle);
  if (PyErr_Occurred() != nullptr) return nullptr;
  const auto status = wait_for(op);
  return status == kRaised ? nullptr : PyLong_FromLong(status);
}

PyObject* wait_all(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(2, count, "wait_all")) return nullptr;
  const auto* const operations = static_cast<const horo_op*>(PyLong_AsVoidPtr(arguments[0]));
  const auto length = PyLong_AsSize_t(arguments[1]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (length == 0) return PyLong_FromLong(HORO_OK);
  const auto status = in_slices(
      [&](std::int64_t slice) { return package().library.await_all(operations, length, slice); });
  return status == kRaised ? nullptr : PyLong_FromLong(status);
}

PyObject* wait_stream(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(3, count, "wait_stream")) return nullptr;
  const auto* const operations = static_cast<const horo_op*>(PyLong_AsVoidPtr(arguments[0]));
  const auto length = PyLong_AsSize_t(arguments[1]);
  void* const stream = as_pointer(arguments[2]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (length == 0) return PyLong_FromLong(HORO_OK);
  const auto status = in_slices([&](std::int64_t slice) {
    return package().library.wait_stream(operations, length, stream, slice);
  });
  return status == kRaised ? nullptr : PyLong_FromLong(status);
}

PyObject* waiting_threads(PyObject*, PyObject*) {
  return Waiter::threads();
}

PyObject* poll(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  PyObject* const handle = only_handle(arguments, count, keywords, "poll");
  if (handle == nullptr) return nullptr;
  const bool pending = PyDict_GetItemWithError(package().pending, handle) != nullptr;
  const auto op = pending ? PyLong_AsUnsignedLongLong(handle) : 0;
  if (pending && PyErr_Occurred() == nullptr)
    return PyBool_FromLong(static_cast<int>(package().library.poll(op) != HORO_IN_PROGRESS));
  PyErr_Clear();  // a group of operations, or a handle that is not in flight
  return call_handles("poll_again", handle);
}

PyObject* synchronize(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  PyObject* const handle = only_handle(arguments, count, keywords, "synchronize");
  if (handle == nullptr) return nullptr;
  const Ref entry = Ref::share(PyDict_GetItemWithError(package().pending, handle));
  if (!entry) return PyErr_Occurred() == nullptr ? none() : nullptr;
  PyObject* const finish = PyTuple_GetItem(entry.get(), 2);
  if (finish == nullptr) return nullptr;
  if (finish != Py_None) return PyObject_CallFunctionObjArgs(finish, handle, entry.get(), nullptr);
  const auto op = as_operation(handle);
  if (PyErr_Occurred() != nullptr) return nullptr;
  const auto status = wait_for(op);
  if (status == kRaised) return nullptr;
  if (status == HORO_OK) return take_result(handle, op, entry.get());
  const Ref code(PyLong_FromLong(status));
  return code ? call_handles("raise_failure", handle, code.get()) : nullptr;
}

}  // namespace horo::fastpath
