// SPDX-License-Identifier: Apache-2.0
// Addresses of arrays that other libraries own: by Python's buffer protocol, and by DLPack.
#pragma once

#include "bindings/python/fastpath/python.hpp"

namespace horo::fastpath {

/// array_address(array): the address of the first element of an array in the host's memory that is
/// contiguous in the order of C and has real numbers or truth values of this machine's byte order.
/// None for every other object, also for arrays whose dtype the buffer protocol does not have.
PyObject* array_address(PyObject* self, PyObject* array);

/// read_capsule(capsule): (address, shape, (type of device, its index), (code, bits, lanes of the
/// dtype), whether it is contiguous) of a DLPack capsule that nobody has used.
/// Fails: ValueError (no such capsule).
PyObject* read_capsule(PyObject* self, PyObject* capsule);

}  // namespace horo::fastpath
