// SPDX-License-Identifier: Apache-2.0
// Submission of tensors and the end of operations: the functions of horo/_handles.py of the same
// names, for the case that nothing is unusual. All other cases call horo/_handles.py.
#pragma once

#include "bindings/python/fastpath/python.hpp"
#include "bindings/python/fastpath/record_fields.hpp"

namespace horo::fastpath {

/// The buffers of one submission.
struct Buffers {
  const void* source = nullptr;
  void* target = nullptr;
  int device = -1;         ///< Whose memory they are; -1: the host's.
  void* stream = nullptr;  ///< The buffers are ready behind its work.
};

/// Submits the tensor of a record. Returns the handle as a new reference, or nullptr with an
/// exception. A refused submission is repeated by horo/_handles.py, which declares an evicted name
/// again and raises errors.
PyObject* submit_record(PyObject* object, RecordFields& record, Buffers buffers);

/// submit(record, source, target)
PyObject* submit(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

/// submit_at(record, source, target, device, stream)
PyObject* submit_at(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

/// wait(handle)
PyObject* wait(PyObject* self, PyObject* handle);

/// wait_all(address, count)
PyObject* wait_all(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

/// wait_stream(address, count, stream): wait_stream_all() for `count` handles at an address.
PyObject* wait_stream(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

/// waiting_threads(): the identifiers of the threads that wait for an operation.
PyObject* waiting_threads(PyObject* self, PyObject* none);

/// poll(handle), by its place or by its name
PyObject* poll(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords);

/// synchronize(handle)
PyObject* synchronize(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                      PyObject* keywords);

}  // namespace horo::fastpath
