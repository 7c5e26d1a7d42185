// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/submissions.hpp"

#include <cstddef>
#include <memory>

#include "bindings/python/fastpath/library.hpp"
#include "bindings/python/fastpath/record_fields.hpp"

namespace horo::fastpath {

namespace {

enum class Filled { yes, unusual, raised };

/// Frees Python's memory. `operator new` would need the C++ library.
struct Free {
  void operator()(horo_submission* memory) const { PyMem_Free(memory); }
};

Filled fill(PyObject* part, horo_submission& submission) {
  if (!PyTuple_Check(part) || PyTuple_Size(part) != 7) return Filled::unusual;
  if (PyTuple_GetItem(part, 4) != Py_None) return Filled::unusual;
  const RecordFields* const record = as_record(PyTuple_GetItem(part, 0));
  if (record == nullptr) return Filled::unusual;
  const auto device = static_cast<int>(PyLong_AsLong(PyTuple_GetItem(part, 5)));
  submission = {.size = sizeof(horo_submission),
                .tensor = record->tensor,
                .in = as_pointer(PyTuple_GetItem(part, 1)),
                .out = as_pointer(PyTuple_GetItem(part, 2)),
                .out_bytes = PyLong_AsSize_t(PyTuple_GetItem(part, 3)),
                .splits = nullptr,
                .split_count = 0,
                .memory = device < 0 ? HORO_MEMORY_HOST : HORO_MEMORY_DEVICE,
                .device = device,
                .stream = as_pointer(PyTuple_GetItem(part, 6))};
  return PyErr_Occurred() == nullptr ? Filled::yes : Filled::raised;
}

}  // namespace

PyObject* submit_parts(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(2, count, "submit_parts")) return nullptr;
  auto* const handles = static_cast<horo_op*>(PyLong_AsVoidPtr(arguments[1]));
  if (PyErr_Occurred() != nullptr || !PyList_Check(arguments[0]))
    return PyErr_Occurred() == nullptr ? none() : nullptr;
  const auto length = static_cast<std::size_t>(PyList_Size(arguments[0]));
  const std::unique_ptr<horo_submission[], Free> submissions(
      static_cast<horo_submission*>(PyMem_Calloc(length, sizeof(horo_submission))));
  if (submissions == nullptr) return PyErr_NoMemory();
  for (std::size_t index = 0; index < length; ++index) {
    const auto filled =
        fill(PyList_GetItem(arguments[0], static_cast<Py_ssize_t>(index)), submissions[index]);
    if (filled != Filled::yes) return filled == Filled::raised ? nullptr : none();
  }
  return PyLong_FromLong(package().library.submit_all(submissions.get(), length, handles));
}

}  // namespace horo::fastpath
