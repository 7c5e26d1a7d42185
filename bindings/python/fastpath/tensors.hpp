// SPDX-License-Identifier: Apache-2.0
// Starts an allreduce of a plain torch tensor with one call from Python.
//
// A tensor is plain if its type is torch.Tensor itself, it is dense, contiguous and real, and it
// lies in the host's memory or on a device of read_device(). Its attributes are read by torch's own
// functions, so no layout of a version of torch is assumed. Everything else is left to
// horo/torch/_collectives.py: these functions then return None.
#pragma once

#include "bindings/python/fastpath/python.hpp"

namespace horo::fastpath {

/// read_tensors(sample, dtypes, storage, declare): `sample` is a torch.Tensor; `dtypes` has the
/// dtypes that plain tensors may have; `storage` is the name of torch.Tensor's method that returns
/// its untyped storage; declare(record, tensor, op, prescale, postscale) declares a record again if
/// its signature differs.
PyObject* read_tensors(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

/// read_device(attribute, stream, places, word): tensors whose `attribute` is True are on a device.
/// stream(index) is the handle of its current stream, `places` has the Place of each (index,
/// stream) that has been used, and `word` is the last item of such a tensor's signature. A tensor
/// whose place is not there is not plain.
PyObject* read_device(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

/// start_allreduce(names, source, target, name, op, prescale, postscale, average, wire_dtype,
/// error_feedback): the handle, or None.
PyObject* start_allreduce(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

}  // namespace horo::fastpath
