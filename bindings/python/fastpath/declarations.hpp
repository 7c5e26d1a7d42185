// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings/python/fastpath/python.hpp"

namespace horo::fastpath {

/// declare(record): horo_declare() for the description of a record, which is a Description of
/// horo/_handles.py. The record then has the tensor. Returns the status.
PyObject* declare(PyObject* self, PyObject* object);

}  // namespace horo::fastpath
