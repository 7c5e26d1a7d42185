# SPDX-License-Identifier: Apache-2.0
"""Horo for numpy arrays, and for whatever numpy can look at: __array_interface__ or DLPack.

    import horo.numpy as horo

    horo.init()
    total = horo.allreduce(array, op=horo.Sum)

Functions in place (allreduce_, broadcast_) write through to the object that they are given.
"""

import ctypes
import pickle
import weakref

import numpy

from horo import _core, _ops
from horo._core import (
    ADASUM as Adasum,
    AVERAGE as Average,
    MAX as Max,
    MIN as Min,
    PRODUCT as Product,
    SUM as Sum,
    barrier,
    counters,
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    poll,
    rank,
    shutdown,
    size,
    synchronize,
)
from horo._native import ALLREDUCE, REDUCESCATTER, fast
from horo._ops import Face
from horo.errors import (
    DuplicateNameError,
    HoroError,
    MismatchError,
    PeerLostError,
    ShutDownError,
)


def _array(value):
    """`value` as an array that shares its memory where it can. Fails: ValueError."""
    if not isinstance(value, numpy.ndarray):
        if not hasattr(value, "__array_interface__") and hasattr(value, "__dlpack__"):
            value = numpy.from_dlpack(value)
        else:
            value = numpy.asarray(value)
    if not value.flags.c_contiguous:
        raise ValueError("the array is not contiguous in memory; use numpy.ascontiguousarray()")
    return value


def _writable(value):
    array = _array(value)
    if not array.flags.writeable and hasattr(value, "__array__"):
        # numpy 1 calls every DLPack view read-only; the object's own view may know better.
        own = numpy.asarray(value)
        array = own if own.ctypes.data == array.ctypes.data else array
    if not array.flags.writeable:
        raise ValueError("the array is read-only; an operation in place needs to write it")
    if not isinstance(value, numpy.ndarray) and not (
        hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")
    ):
        raise ValueError(f"a {type(value).__name__} has no memory of its own to work on in place")
    return array


_FACE = Face(
    pointer=lambda array: array.ctypes.data,
    dtype=lambda array: array.dtype.name,  # numpy's name of bfloat16 (ml_dtypes) is ours
    nbytes=lambda array: array.nbytes,
    empty=lambda shape, like: numpy.empty(shape, like.dtype),
)


def _start_reduction(kind, source, target, name, op, prescale, postscale):
    op = _core.resolve_op(None, op)
    part = _ops.reduction(_FACE, kind, source, target, name, op, prescale, postscale)
    handle = _core.submit_part(part)
    _core.PENDING[handle] = (target, source, None)
    return handle


def _start_reductions(kind, what, sources, targets, name, op, prescale, postscale):
    op = _core.resolve_op(None, op)
    names = _ops.member_names(name, sources, what)
    return _ops.start_reductions(
        _FACE, kind, sources, targets, names, op, (prescale, postscale)
    )


def allreduce_async(array, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """Starts reducing into a new array; `array` must not change before the end."""
    source = _array(array)
    target = numpy.empty_like(source, subok=False)
    return _start_reduction(
        ALLREDUCE, source, target, name, op, prescale_factor, postscale_factor
    )


def allreduce_async_(array, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """Starts reducing in place; synchronize() gives an array over the same memory."""
    source = _writable(array)
    return _start_reduction(
        ALLREDUCE, source, source, name, op, prescale_factor, postscale_factor
    )


def allreduce(array, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """The arrays of all ranks, reduced: by average unless `op` says otherwise."""
    return synchronize(allreduce_async(array, name, op, prescale_factor, postscale_factor))


def allreduce_(array, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """As allreduce, in place."""
    return synchronize(allreduce_async_(array, name, op, prescale_factor, postscale_factor))


def grouped_allreduce_async(arrays, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """Starts reducing several arrays together; one handle, whose result is a list."""
    sources = [_array(array) for array in arrays]
    targets = [numpy.empty_like(source, subok=False) for source in sources]
    return _start_reductions(
        ALLREDUCE, "allreduce", sources, targets, name, op, prescale_factor, postscale_factor
    )


def grouped_allreduce_async_(arrays, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """As grouped_allreduce_async, in place."""
    sources = [_writable(array) for array in arrays]
    return _start_reductions(
        ALLREDUCE, "allreduce", sources, sources, name, op, prescale_factor, postscale_factor
    )


def grouped_allreduce(arrays, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """Several arrays, reduced together: a list."""
    return synchronize(
        grouped_allreduce_async(arrays, name, op, prescale_factor, postscale_factor)
    )


def grouped_allreduce_(arrays, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """As grouped_allreduce, in place."""
    return synchronize(
        grouped_allreduce_async_(arrays, name, op, prescale_factor, postscale_factor)
    )


def reducescatter_async(array, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """Starts reducing; each rank gets its rows of the result."""
    source = _array(array)
    target = _ops.scattered(_FACE, source)
    return _start_reduction(
        REDUCESCATTER, source, target, name, op, prescale_factor, postscale_factor
    )


def reducescatter(array, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """This rank's rows of what allreduce gives: dimension 0 is dealt out in rank order, rows that
    are over one each to the first ranks."""
    return synchronize(reducescatter_async(array, name, op, prescale_factor, postscale_factor))


def grouped_reducescatter_async(
    arrays, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0
):
    """Starts several reducescatters together; one handle, whose result is a list."""
    sources = [_array(array) for array in arrays]
    targets = [_ops.scattered(_FACE, source) for source in sources]
    factors = (prescale_factor, postscale_factor)
    return _start_reductions(
        REDUCESCATTER, "reducescatter", sources, targets, name, op, *factors
    )


def grouped_reducescatter(arrays, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    """Several reducescatters together: a list."""
    return synchronize(
        grouped_reducescatter_async(arrays, name, op, prescale_factor, postscale_factor)
    )


def _only_result(result, _rows):
    return result


def allgather_async(array, name=None):
    """Starts concatenating along dimension 0, which may differ between ranks."""
    return _ops.start_allgather(_FACE, _array(array), name, _only_result)


def allgather(array, name=None):
    """The arrays of all ranks, concatenated along dimension 0 in rank order."""
    return synchronize(allgather_async(array, name))


def grouped_allgather_async(arrays, name=None):
    """Starts several allgathers together; one handle, whose result is a list."""
    sources = [_array(array) for array in arrays]
    names = _ops.member_names(name, sources, "allgather")
    return _ops.start_allgathers(_FACE, sources, names, [_only_result] * len(sources))


def grouped_allgather(arrays, name=None):
    """Several allgathers together: a list."""
    return synchronize(grouped_allgather_async(arrays, name))


def alltoall_async(array, splits=None, name=None):
    """Starts an alltoall; synchronize() gives (array, received splits)."""
    numbers = _ops.whole_numbers(splits)
    return _ops.start_alltoall(
        _FACE,
        _array(array),
        numbers,
        name,
        lambda result, rows: (result, numpy.array(rows, numpy.int32)),
    )


def alltoall(array, splits=None, name=None):
    """Sends `splits[r]` rows to rank r, equally many to all when there are no splits, and gives
    the rows received, in rank order; with splits (rows, how many came from each rank)."""
    result = synchronize(alltoall_async(array, splits, name))
    return result[0] if splits is None else result


def broadcast_async(array, root_rank, name=None):
    """Starts copying the root's array into a new one on every rank."""
    source = _array(array)
    target = numpy.empty_like(source, subok=False)
    return _ops.start_broadcast(_FACE, source, target, root_rank, name)


def broadcast_async_(array, root_rank, name=None):
    """Starts copying the root's array to every rank, in place."""
    source = _writable(array)
    return _ops.start_broadcast(_FACE, source, source, root_rank, name)


def broadcast(array, root_rank, name=None):
    """The root's array, as a new one on every rank."""
    return synchronize(broadcast_async(array, root_rank, name))


def broadcast_(array, root_rank, name=None):
    """Copies the root's array to every rank, in place."""
    return synchronize(broadcast_async_(array, root_rank, name))


def broadcast_object(obj, root_rank=0, name=None):
    """The root's `obj` on every rank, by pickle."""
    size_name, data_name = (None, None) if name is None else (f"{name}.sz", f"{name}.t")
    at_root = rank() == root_rank
    body = numpy.frombuffer(pickle.dumps(obj) if at_root else b"", numpy.uint8)
    length = broadcast(numpy.array([body.size], numpy.int64), root_rank, size_name)[0]
    if not at_root:
        body = numpy.empty(length, numpy.uint8)
    body = broadcast(body, root_rank, data_name)
    return obj if at_root else pickle.loads(body.tobytes())


def shared_empty(shape, dtype=numpy.float64):
    """An uninitialised array in the memory that the ranks of the host share: reduced in place
    without a copy. Freed when the last array over it dies; not inherited across fork."""
    dtype = numpy.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = 1
    for extent in shape:
        count *= extent
    length = count * dtype.itemsize
    if not length:
        return numpy.empty(shape, dtype)
    memory = ctypes.c_void_p()
    _core.check(fast.horo_alloc(length, ctypes.addressof(memory)))
    block = (ctypes.c_char * length).from_address(memory.value)
    weakref.finalize(block, fast.horo_free, memory.value).atexit = False
    return numpy.frombuffer(block, dtype).reshape(shape)
