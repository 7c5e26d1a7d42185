// SPDX-License-Identifier: Apache-2.0
// The base of horo._names.Record: one declared name, with fields that C++ reads without a look-up.
#pragma once

#include "bindings/python/fastpath/python.hpp"

namespace horo::fastpath {

/// Python sees every field as an attribute. horo/_names.py says what they mean.
struct RecordFields {
  PyObject ob_base;
  PyObject* name;
  PyObject* slot;
  PyObject* description;
  PyObject* signature;
  PyObject* rows;
  unsigned long long tensor;   // NOLINT(google-runtime-int): Python's T_ULONGLONG
  unsigned long long address;  // NOLINT(google-runtime-int): as above
  unsigned long long handle;   // NOLINT(google-runtime-int): as above
  unsigned int set;
};

/// Makes the type. Returns a new reference, or nullptr with an exception. Call it once.
PyObject* make_record_type();

/// The fields of a Record; nullptr for any other object.
RecordFields* as_record(PyObject* object);

}  // namespace horo::fastpath
