// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/arrays.hpp"

#include <cstdint>
#include <cstring>

// Python 3.11 made the buffer protocol part of the stable ABI. Before, the structure has the same
// fields, the functions have the same meaning, and every CPython exports them.
extern "C" {

struct HoroBuffer {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
};

int PyObject_GetBuffer(PyObject* object, HoroBuffer* buffer, int flags);
void PyBuffer_Release(HoroBuffer* buffer);

}  // extern "C"

namespace horo::fastpath {

namespace {

constexpr int kFormat = 0x0004;               // PyBUF_FORMAT
constexpr int kContiguous = 0x0020 | 0x0018;  // PyBUF_C_CONTIGUOUS

/// Letters of the struct module for the numbers that a tensor may have, in native byte order.
/// libhoro says which of them it does not move.
constexpr const char* kNumbers = "?bBhHiIlLqQefd";

// -- DLPack ---------------------------------------------------------------------------------------

struct DlTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_index;
  std::int32_t dimensions;
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
  const std::int64_t* shape;
  const std::int64_t* strides;
  std::uint64_t offset;
};

static_assert(sizeof(DlTensor) == 48, "DLTensor of DLPack has 48 bytes");

/// Whether strides are those of an array in the order of C.
bool in_order(const DlTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  for (std::int32_t i = 0; i < tensor.dimensions; ++i) {
    if (tensor.shape[i] == 0) return true;
  }
  std::int64_t expected = 1;
  for (auto i = tensor.dimensions - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

Ref shape_of(const DlTensor& tensor) {
  Ref shape(PyTuple_New(tensor.dimensions));
  for (std::int32_t i = 0; shape && i < tensor.dimensions; ++i) {
    PyObject* const extent = PyLong_FromLongLong(tensor.shape[i]);
    if (extent == nullptr || PyTuple_SetItem(shape.get(), i, extent) < 0) return {};
  }
  return shape;
}

}  // namespace

PyObject* array_address(PyObject*, PyObject* array) {
  HoroBuffer buffer{};
  if (PyObject_GetBuffer(array, &buffer, kFormat | kContiguous) < 0) {
    PyErr_Clear();
    return none();
  }
  const char* const format = buffer.format == nullptr ? "B" : buffer.format;
  const bool known =
      format[0] != '\0' && format[1] == '\0' && std::strchr(kNumbers, format[0]) != nullptr;
  void* const address = buffer.buf;
  PyBuffer_Release(&buffer);
  return known ? PyLong_FromVoidPtr(address) : none();
}

PyObject* read_capsule(PyObject*, PyObject* capsule) {
  const auto* const tensor =
      static_cast<const DlTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (tensor == nullptr) return nullptr;
  const Ref shape = shape_of(*tensor);
  if (!shape) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor->data) + tensor->offset;
  return Py_BuildValue("KO(ii)(iii)O", static_cast<unsigned long long>(address), shape.get(),
                       tensor->device_type, tensor->device_index, int{tensor->code},
                       int{tensor->bits}, int{tensor->lanes},
                       in_order(*tensor) ? Py_True : Py_False);
}

}  // namespace horo::fastpath
