# SPDX-License-Identifier: Apache-2.0
"""Horo for numpy arrays, and for objects that export __array_interface__ or DLPack, also from the memory of
CUDA devices.

    import horo.numpy as horo

    horo.init()
    total = horo.allreduce(array, op=horo.Sum)

Functions in place (allreduce_, broadcast_) write to the memory of the object that they are given. An
array of a CUDA device stays there: results are arrays of its own library (`__array_namespace__`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy

from horo import _extension
from horo._arena import allocate
from horo._arguments import (
    ADASUM as Adasum,
    AVERAGE as Average,
    MAX as Max,
    MIN as Min,
    OP_NAMES,
    PRODUCT as Product,
    SUM as Sum,
)
from horo._barrier import barrier, join
from horo._collectives import Collectives
from horo._device.dlpack_arrays import DevicePart, is_on_device
from horo._device.dlpack_arrays import copy as device_copy
from horo._device.dlpack_arrays import empty as device_empty
from horo._face import Face
from horo._handles import poll, synchronize
from horo._job import (
    counters,
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    size,
    start_timeline,
    stop_timeline,
)
from horo._life import init, shutdown
from horo._objects import allgather_object, broadcast_object
from horo._sets import (
    ProcessSet,
    add_process_set,
    get_process_set_ids_and_ranks,
    global_process_set,
    is_process_set_included,
    remove_process_set,
)
from horo.errors import (
    DuplicateNameError,
    HoroError,
    MismatchError,
    PeerLostError,
    RemovedError,
    ShutDownError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, DTypeLike, NDArray
    from typing_extensions import TypeAlias

    Array: TypeAlias = NDArray[Any]


# The address of an array that is itself a part, or None; None where only this package can tell.
_array_address = None if _extension.module is None else _extension.module.array_address


def _needs_copy(array):
    return not (array.flags.c_contiguous and array.dtype.isnative)


class _NumpyFace(Face):
    """A complex array becomes a part with two real numbers in one more dimension."""

    def array(self, given):
        if isinstance(given, numpy.ndarray) or is_on_device(given):
            return given
        if not hasattr(given, "__array_interface__") and hasattr(given, "__dlpack__"):
            return numpy.from_dlpack(given)
        return numpy.asarray(given)

    def writable(self, given):
        array = self.array(given)
        if not isinstance(array, numpy.ndarray):
            if type(array).__module__.startswith("jax"):
                raise ValueError("an array of JAX cannot be written; an operation in place needs that")
            return array
        if not array.flags.writeable and hasattr(given, "__array__"):
            # numpy 1 marks every DLPack view read-only; the object's own view may be writable.
            own = numpy.asarray(given)
            array = own if own.ctypes.data == array.ctypes.data else array
        if not array.flags.writeable:
            raise ValueError("the array is read-only; an operation in place needs to write it")
        if not isinstance(given, numpy.ndarray) and not (
            hasattr(given, "__array_interface__") or hasattr(given, "__dlpack__")
        ):
            raise ValueError(f"a {type(given).__name__} has no memory to work on in place")
        return array

    def check(self, array, op=Sum):
        kind = array.dtype.kind if isinstance(array, numpy.ndarray) else ""
        if kind == "c" and op not in (Sum, Average):
            raise ValueError(
                f"op={OP_NAMES[op]} of {array.dtype}: complex arrays reduce by Sum or Average"
            )

    def view(self, array):
        if not isinstance(array, numpy.ndarray):
            part = DevicePart(array)
            return part if part.seen.contiguous else None
        if _needs_copy(array):
            return None
        if array.dtype.kind != "c":
            return array
        return array.reshape((*array.shape, 1)).view(array.real.dtype)

    def copy_in(self, array):
        if not isinstance(array, numpy.ndarray):
            copied = device_empty(array, tuple(array.shape))
            copied[...] = array
            return DevicePart(copied)
        return self.view(array.astype(array.dtype.newbyteorder("="), order="C"))

    def copy_out(self, part, array):
        if isinstance(part, DevicePart):
            array[...] = part.given
            return
        array[...] = self.wrap(part, array)

    def wrap(self, part, like):
        if isinstance(part, DevicePart):
            return part.given
        if like.dtype.kind == "c":
            part = part.view(like.dtype.newbyteorder("="))[..., 0]
        return part.astype(like.dtype, copy=False)

    def empty(self, shape, like):
        if isinstance(like, DevicePart):
            return DevicePart(device_empty(like.given, tuple(shape)))
        return numpy.empty(shape, like.dtype)

    def empty_like(self, array):
        if not isinstance(array, numpy.ndarray):
            return device_empty(array, tuple(array.shape))
        return numpy.empty_like(array, subok=False)

    def counts(self, numbers, asked):
        return numpy.array(numbers, numpy.int32)

    def pointer(self, part):
        if isinstance(part, DevicePart):
            return part.seen.address
        address = None if _array_address is None else _array_address(part)
        return part.ctypes.data if address is None else address

    def address(self, array):
        if _array_address is None:
            return super().address(array)
        address = _array_address(array)
        # The buffer protocol does not have bfloat16 and other dtypes of extensions.
        return super().address(array) if address is None else address

    def dtype(self, part):
        # ml_dtypes calls bfloat16 as horo.h does.
        return part.dtype if isinstance(part, DevicePart) else part.dtype.name

    def nbytes(self, part):
        return part.nbytes() if isinstance(part, DevicePart) else part.nbytes

    def place(self, part):
        return part.place if isinstance(part, DevicePart) else None

    def fill(self, part, address, length, place):
        if place is None:
            super().fill(part, address, length, place)
        else:
            device_copy(part.seen.address, address, length, place.index)

    def check_group(self, arrays):
        kinds = {isinstance(array, numpy.ndarray) for array in arrays}
        if len(kinds) > 1:
            raise ValueError(
                "the arrays of a group are in the host's memory and on a device; they must be in one "
                "place: move them, or make two groups"
            )


collectives: Collectives[ArrayLike, Array] = Collectives(_NumpyFace(), __name__, "collectives")

allreduce = collectives.allreduce
allreduce_ = collectives.allreduce_
allreduce_async = collectives.allreduce_async
allreduce_async_ = collectives.allreduce_async_
grouped_allreduce = collectives.grouped_allreduce
grouped_allreduce_ = collectives.grouped_allreduce_
grouped_allreduce_async = collectives.grouped_allreduce_async
grouped_allreduce_async_ = collectives.grouped_allreduce_async_
reducescatter = collectives.reducescatter
reducescatter_async = collectives.reducescatter_async
grouped_reducescatter = collectives.grouped_reducescatter
grouped_reducescatter_async = collectives.grouped_reducescatter_async
allgather = collectives.allgather
allgather_async = collectives.allgather_async
grouped_allgather = collectives.grouped_allgather
grouped_allgather_async = collectives.grouped_allgather_async
alltoall = collectives.alltoall
alltoall_async = collectives.alltoall_async
broadcast = collectives.broadcast
broadcast_ = collectives.broadcast_
broadcast_async = collectives.broadcast_async
broadcast_async_ = collectives.broadcast_async_


def shared_empty(shape: int | Sequence[int], dtype: DTypeLike = numpy.float64) -> Array:
    """An uninitialised array in the memory that the ranks of the host share, where it is reduced
    in place without a copy. It is freed when the last array over it dies. A forked child does not
    inherit it."""
    dtype = numpy.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    length = math.prod(shape) * dtype.itemsize
    if not length:
        return numpy.empty(shape, dtype)
    return numpy.frombuffer(allocate(length), dtype).reshape(shape)


__all__ = [
    "Adasum",
    "add_process_set",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "Average",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "counters",
    "cross_rank",
    "cross_size",
    "DuplicateNameError",
    "get_process_set_ids_and_ranks",
    "global_process_set",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "HoroError",
    "init",
    "is_homogeneous",
    "is_initialized",
    "is_process_set_included",
    "join",
    "local_rank",
    "local_size",
    "Max",
    "Min",
    "MismatchError",
    "PeerLostError",
    "poll",
    "ProcessSet",
    "Product",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "remove_process_set",
    "RemovedError",
    "shared_empty",
    "shutdown",
    "ShutDownError",
    "size",
    "start_timeline",
    "stop_timeline",
    "Sum",
    "synchronize",
]
