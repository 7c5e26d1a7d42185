# SPDX-License-Identifier: Apache-2.0
"""The collectives' view of MXNet's arrays.

MXNet computes arrays in threads of its own. The address of an array is therefore read only after all
that MXNet still does with the array. An array in the host's memory is a part itself; arrays of GPUs
are copied to the host, and their results back.
"""

from __future__ import annotations

import ctypes

import numpy

from horo._arguments import SUM
from horo._face import Face
from horo._operations import Operations
from horo.mxnet._mxnet import mxnet

_HOST = ("cpu", "cpu_pinned", "cpu_shared")
_library, _check = mxnet.base._LIB, mxnet.base.check_call


def _like(array, other):
    """`array` with the interface of `other`: that of mxnet.np, or that of mxnet.nd."""
    return array.as_np_ndarray() if isinstance(other, mxnet.np.ndarray) else array


def _empty(shape, like, context):
    return _like(mxnet.nd.empty(shape, context, like.dtype), like)


class _MxnetFace(Face):
    def array(self, given):
        if not isinstance(given, mxnet.nd.NDArray):
            raise ValueError(f"{type(given).__name__} is not an array of MXNet; try mxnet.nd.array()")
        return given

    def check(self, array, op=SUM):
        self.array(array)
        if array.stype != "default":
            raise ValueError(f"storage type {array.stype} is not dense; use tostype('default')")

    def check_group(self, arrays):
        for array in arrays:
            self.array(array)
        if len({str(array.context) for array in arrays}) > 1:
            raise ValueError("the arrays of a group must be on one device")

    def view(self, array):
        return array if array.context.device_type in _HOST and array.stype == "default" else None

    def copy_in(self, array):
        return array.copyto(mxnet.cpu())

    def copy_out(self, part, array):
        part.copyto(array)

    def wrap(self, part, like):
        return part.as_in_context(like.context)

    def empty(self, shape, like):
        return _empty(shape, like, mxnet.cpu())

    def empty_like(self, array):
        return _empty(array.shape, array, array.context)

    def splits(self, given):
        return given.asnumpy().tolist() if isinstance(given, mxnet.nd.NDArray) else given

    def counts(self, numbers, asked):
        counts = mxnet.nd.array(numbers, dtype="int32")
        return _like(counts, asked)

    def pointer(self, part):
        _check(_library.MXNDArrayWaitToWrite(part.handle))
        address = ctypes.c_void_p()
        _check(_library.MXNDArrayGetData(part.handle, ctypes.byref(address)))
        return address.value

    def dtype(self, part):
        dtype = numpy.dtype(part.dtype)
        return dtype.names[0] if dtype.names else dtype.name  # MXNet's bfloat16 is a structure of one field

    def nbytes(self, part):
        return part.size * numpy.dtype(part.dtype).itemsize


FACE = _MxnetFace()
MXNET = Operations(FACE)
