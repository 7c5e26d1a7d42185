// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/declarations.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bindings/python/fastpath/library.hpp"
#include "bindings/python/fastpath/record_fields.hpp"

namespace horo::fastpath {

namespace {

/// The items of a Description, in its order.
enum Item : Py_ssize_t {
  kKind,
  kOp,
  kDtype,
  kShape,
  kRootRank,
  kPrescale,
  kPostscale,
  kGroup,
  kGroupSize,
  kWireDtype,
  kWireFeedback,
  kMemory,
  kItems
};

struct Free {
  void operator()(std::int64_t* memory) const { PyMem_Free(memory); }
};

using Extents = std::unique_ptr<std::int64_t[], Free>;

/// Reads items of one Description. After an exception, further items are zero.
class Items {
 public:
  explicit Items(PyObject* tuple) : tuple_(tuple) {}

  PyObject* object(Item item) const { return PyTuple_GetItem(tuple_, item); }

  int number(Item item) const {
    return PyErr_Occurred() != nullptr ? 0 : static_cast<int>(PyLong_AsLong(object(item)));
  }

  double factor(Item item) const {
    return PyErr_Occurred() != nullptr ? 0 : PyFloat_AsDouble(object(item));
  }

  /// The bytes of a text; nullptr for None.
  const char* text(Item item) const {
    if (PyErr_Occurred() != nullptr || object(item) == Py_None) return nullptr;
    return PyBytes_AsString(object(item));
  }

 private:
  PyObject* tuple_;
};

/// Copies the extents of a shape. Empty, with an exception, if they are not whole numbers.
Extents extents_of(PyObject* shape, Py_ssize_t count) {
  Extents extents(static_cast<std::int64_t*>(
      PyMem_Calloc(static_cast<std::size_t>(count) + 1, sizeof(std::int64_t))));
  if (extents == nullptr) {
    PyErr_NoMemory();
    return extents;
  }
  for (Py_ssize_t i = 0; i < count; ++i)
    extents[static_cast<std::size_t>(i)] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
  if (PyErr_Occurred() != nullptr) extents.reset();
  return extents;
}

horo_tensor_desc described(const RecordFields& record, const Items& items) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = PyBytes_AsString(record.name);
  desc.kind = static_cast<horo_kind>(items.number(kKind));
  desc.op = static_cast<horo_reduce_op>(items.number(kOp));
  desc.dtype = static_cast<horo_dtype>(items.number(kDtype));
  desc.root_rank = items.number(kRootRank);
  desc.prescale = items.factor(kPrescale);
  desc.postscale = items.factor(kPostscale);
  desc.process_set = record.set;
  desc.group = items.text(kGroup);
  desc.group_size = static_cast<std::uint32_t>(items.number(kGroupSize));
  desc.wire_dtype = static_cast<horo_wire_dtype>(items.number(kWireDtype));
  desc.wire_feedback = items.number(kWireFeedback);
  desc.memory = static_cast<horo_memory>(items.number(kMemory));
  return desc;
}

}  // namespace

PyObject* declare(PyObject*, PyObject* object) {
  RecordFields* const record = as_record(object);
  const Ref description = Ref::share(record == nullptr ? nullptr : record->description);
  if (!description || record->name == nullptr || !PyTuple_Check(description.get()) ||
      PyTuple_Size(description.get()) != kItems) {
    PyErr_SetString(PyExc_TypeError, "declare() takes a Record that has a Description");
    return nullptr;
  }
  const Items items(description.get());
  PyObject* const shape = items.object(kShape);
  if (!PyTuple_Check(shape)) {
    PyErr_SetString(PyExc_TypeError, "the shape of a Description is not a tuple");
    return nullptr;
  }
  const auto count = PyTuple_Size(shape);
  const Extents extents = extents_of(shape, count);
  if (extents == nullptr) return nullptr;
  auto desc = described(*record, items);
  if (PyErr_Occurred() != nullptr) return nullptr;
  desc.ndim = static_cast<int>(count);
  desc.shape = extents.get();
  horo_tensor tensor = 0;
  const auto status = package().library.declare(&desc, &tensor);
  if (status == HORO_OK) record->tensor = tensor;
  return PyLong_FromLong(status);
}

}  // namespace horo::fastpath
