// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings/python/fastpath/python.hpp"

namespace horo::fastpath {

/// submit_parts(parts, address): horo_submit_all() for a list of Part, each of seven items (record,
/// source, target, room, splits, device, stream). The array of handles at `address` has room for
/// all. Returns the status, or None, with nothing submitted, when a part has splits.
PyObject* submit_parts(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

}  // namespace horo::fastpath
