# SPDX-License-Identifier: Apache-2.0
"""Horo for numpy arrays, and for whatever numpy can look at: __array_interface__ or DLPack.

    import horo.numpy as horo

    horo.init()
    total = horo.allreduce(array, op=horo.Sum)

Functions in place (allreduce_, broadcast_) write through to the object that they are given.
"""

from __future__ import annotations

import ctypes
import functools
import pickle
import weakref
from typing import TYPE_CHECKING

import numpy

from horo import _core, _ops, _sets
from horo._core import (
    ADASUM as Adasum,
    AVERAGE as Average,
    MAX as Max,
    MIN as Min,
    PRODUCT as Product,
    SUM as Sum,
    counters,
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    poll,
    rank,
    size,
    start_timeline,
    stop_timeline,
    synchronize,
)
from horo._native import ALLREDUCE, BROADCAST, REDUCESCATTER, fast
from horo._ops import Face
from horo._pickled import dumps
from horo._sets import (
    ProcessSet,
    add_process_set,
    barrier,
    get_process_set_ids_and_ranks,
    global_process_set,
    init,
    is_process_set_included,
    join,
    remove_process_set,
    shutdown,
)
from horo.errors import (
    DuplicateNameError,
    HoroError,
    MismatchError,
    PeerLostError,
    ShutDownError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Union

    from numpy.typing import ArrayLike, DTypeLike, NDArray
    from typing_extensions import ParamSpec, TypeAlias

    Splits = Union[Sequence[int], NDArray[Any], None]
    Array: TypeAlias = NDArray[Any]
    P = ParamSpec("P")


def _array(value):
    """`value` as an array that shares its memory where it can."""
    if not isinstance(value, numpy.ndarray):
        if not hasattr(value, "__array_interface__") and hasattr(value, "__dlpack__"):
            value = numpy.from_dlpack(value)
        else:
            value = numpy.asarray(value)
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
    memory=lambda array: array,
)


def _needs_copy(array):
    return not (array.flags.c_contiguous and array.dtype.isnative)


def _part(array, op=_core.SUM):
    """The array as the runtime sees it: contiguous, in this machine's byte order, complex numbers as
    two real ones each. A copy where it is not. Fails: ValueError (an `op` that is none of complex
    numbers)."""
    if _needs_copy(array):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    if array.dtype.kind != "c":
        return array
    if op not in (_core.SUM, _core.AVERAGE):
        raise ValueError(
            f"op={_core.OP_NAMES[op]} of {array.dtype}: complex arrays reduce by Sum or Average"
        )
    return array.reshape(array.shape + (1,)).view(array.real.dtype)


def _rows_part(array, what):
    _ops.need_rows(array, what)
    return _part(array)


def _like(part, array):
    """What the runtime gave as `part`, in the dtype of `array`."""
    if array.dtype.kind == "c":
        part = part.view(array.dtype.newbyteorder("="))[..., 0]
    return part.astype(array.dtype, copy=False)


def _landing(target):
    """Where the result for `target` goes, and the finish function that brings it home from there,
    if need be."""
    part = _part(target)
    if part is target:
        return target, None

    def finish(handle, _item, status=None):
        if status is None:
            status = _core.wait(handle)
        error = _core.failure(status) if status else None
        if error is None and _needs_copy(target):
            target[...] = _like(part, target)
        _core.take(handle)
        if error is not None:
            raise error
        return target

    return part, finish


def _start_reduction(kind, source, target, name, op, factors, names):
    op = _core.resolve_op(None, op)
    part, (out, finish) = _part(source, op), _landing(target)
    record = names.record(kind, name)
    handle = _core.submit_part(_ops.reduction(_FACE, record, kind, part, out, op, *factors))
    _core.PENDING[handle] = (out, part, finish)
    return handle


def _start_reductions(kind, sources, targets, name, op, factors, names):
    op = _core.resolve_op(None, op)
    parts, landings = [_part(source, op) for source in sources], [_landing(one) for one in targets]
    outs, finishes = [out for out, _ in landings], [finish for _, finish in landings]
    return _ops.start_reductions(_FACE, names, kind, name, parts, outs, op, factors, finishes)


def allreduce_async(
    array: ArrayLike,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
) -> int:
    """Starts reducing into a new array; `array` must not change before the end."""
    names, source = _sets.of(process_set), _array(array)
    target = numpy.empty_like(source, subok=False)
    factors = (prescale_factor, postscale_factor)
    return _start_reduction(ALLREDUCE, source, target, name, op, factors, names)


def allreduce_async_(
    array: ArrayLike,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
) -> int:
    """Starts reducing in place; synchronize() gives an array over the same memory."""
    names, source = _sets.of(process_set), _writable(array)
    factors = (prescale_factor, postscale_factor)
    return _start_reduction(ALLREDUCE, source, source, name, op, factors, names)


def grouped_allreduce_async(
    arrays: Iterable[ArrayLike],
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
) -> int:
    """Starts reducing several arrays, which become ready together; one handle, whose result is a
    list."""
    names, sources = _sets.of(process_set), [_array(array) for array in arrays]
    targets = [numpy.empty_like(source, subok=False) for source in sources]
    factors = (prescale_factor, postscale_factor)
    return _start_reductions(ALLREDUCE, sources, targets, name, op, factors, names)


def grouped_allreduce_async_(
    arrays: Iterable[ArrayLike],
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
) -> int:
    """As grouped_allreduce_async, in place."""
    names, sources = _sets.of(process_set), [_writable(array) for array in arrays]
    factors = (prescale_factor, postscale_factor)
    return _start_reductions(ALLREDUCE, sources, sources, name, op, factors, names)


def reducescatter_async(
    array: ArrayLike,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
) -> int:
    """Starts reducing; each rank gets its rows of the result."""
    names, source = _sets.of(process_set), _array(array)
    target = _ops.scattered(_FACE, names, source)
    factors = (prescale_factor, postscale_factor)
    return _start_reduction(REDUCESCATTER, source, target, name, op, factors, names)


def grouped_reducescatter_async(
    arrays: Iterable[ArrayLike],
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
) -> int:
    """Starts several reducescatters together; one handle, whose result is a list."""
    names, sources = _sets.of(process_set), [_array(array) for array in arrays]
    targets = [_ops.scattered(_FACE, names, source) for source in sources]
    factors = (prescale_factor, postscale_factor)
    return _start_reductions(REDUCESCATTER, sources, targets, name, op, factors, names)


def _give(array):
    return lambda result, _rows: _like(result, array)


def allgather_async(
    array: ArrayLike, name: str | None = None, process_set: ProcessSet | None = None
) -> int:
    """Starts concatenating along dimension 0, which may differ between ranks."""
    names, source = _sets.of(process_set), _array(array)
    part = _rows_part(source, "allgather")
    return _ops.start_allgather(_FACE, names, name, part, _give(source))


def grouped_allgather_async(
    arrays: Iterable[ArrayLike], name: str | None = None, process_set: ProcessSet | None = None
) -> int:
    """Starts several allgathers together; one handle, whose result is a list."""
    names, sources = _sets.of(process_set), [_array(array) for array in arrays]
    parts = [_rows_part(source, "allgather") for source in sources]
    return _ops.start_allgathers(_FACE, names, name, parts, [_give(one) for one in sources])


def alltoall_async(
    array: ArrayLike,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet | None = None,
) -> int:
    """Starts an alltoall; synchronize() gives (array, received splits)."""
    names, numbers = _sets.of(process_set), _ops.whole_numbers(splits)
    source = _array(array)

    def give(result, rows):
        return _like(result, source), numpy.array(rows, numpy.int32)

    part = _rows_part(source, "alltoall")
    return _ops.start_alltoall(_FACE, names, name, part, numbers, give)


def _start_broadcast(source, target, root_rank, name, names):
    part, (out, finish) = _part(source), _landing(target)
    record = names.record(BROADCAST, name)
    return _ops.start_broadcast(_FACE, record, part, out, root_rank, finish)


def broadcast_async(
    array: ArrayLike, root_rank: int, name: str | None = None, process_set: ProcessSet | None = None
) -> int:
    """Starts copying the root's array into a new one on every rank."""
    names, source = _sets.of(process_set), _array(array)
    target = numpy.empty_like(source, subok=False)
    return _start_broadcast(source, target, root_rank, name, names)


def broadcast_async_(
    array: ArrayLike, root_rank: int, name: str | None = None, process_set: ProcessSet | None = None
) -> int:
    """Starts copying the root's array to every rank, in place."""
    names, source = _sets.of(process_set), _writable(array)
    return _start_broadcast(source, source, root_rank, name, names)


# -- The same, waited for ------------------------------------------------------------------------


def _synchronous(start: Callable[P, int], name: str, text: str) -> Callable[P, Any]:
    @functools.wraps(start)
    def wait(*args: P.args, **kwargs: P.kwargs) -> Any:
        return synchronize(start(*args, **kwargs))

    wait.__name__ = wait.__qualname__ = name
    wait.__doc__ = text
    wait.__annotations__ = dict(start.__annotations__, **{"return": "Any"})
    return wait


allreduce = _synchronous(
    allreduce_async,
    "allreduce",
    "The arrays of all ranks, reduced: by average unless `op` says otherwise.",
)
allreduce_ = _synchronous(allreduce_async_, "allreduce_", "As allreduce, in place.")
grouped_allreduce = _synchronous(
    grouped_allreduce_async, "grouped_allreduce", "Several arrays, reduced together: a list."
)
grouped_allreduce_ = _synchronous(
    grouped_allreduce_async_, "grouped_allreduce_", "As grouped_allreduce, in place."
)
reducescatter = _synchronous(
    reducescatter_async,
    "reducescatter",
    """This rank's rows of what allreduce gives: dimension 0 is dealt out in rank order, rows that
    are over one each to the first ranks.""",
)
grouped_reducescatter = _synchronous(
    grouped_reducescatter_async, "grouped_reducescatter", "Several reducescatters together: a list."
)
allgather = _synchronous(
    allgather_async,
    "allgather",
    "The arrays of all ranks, concatenated along dimension 0 in rank order.",
)
grouped_allgather = _synchronous(
    grouped_allgather_async, "grouped_allgather", "Several allgathers together: a list."
)
broadcast = _synchronous(
    broadcast_async, "broadcast", "The root's array, as a new one on every rank."
)
broadcast_ = _synchronous(
    broadcast_async_, "broadcast_", "Copies the root's array to every rank, in place."
)


def alltoall(
    array: ArrayLike,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet | None = None,
) -> Any:
    """Sends `splits[r]` rows to rank r, equally many to all when there are no splits, and gives
    the rows received, in rank order; with splits (rows, how many came from each rank)."""
    result = synchronize(alltoall_async(array, splits, name, process_set))
    return result[0] if splits is None else result


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet | None = None
) -> Any:
    """The root's `obj` on every rank, by pickle. Fails on all ranks when it cannot be pickled."""
    size_name, data_name = (None, None) if name is None else (f"{name}.sz", f"{name}.t")
    at_root = rank() == root_rank
    pickled: Any = b""
    problem = None
    if at_root:
        try:
            pickled = dumps(obj)
        except Exception as error:
            problem = error
    length = numpy.array([-1 if problem else len(pickled)], numpy.int64)
    length = broadcast(length, root_rank, size_name, process_set)[0]
    if problem is not None:
        raise problem
    if length < 0:
        raise HoroError(f"rank {root_rank} could not pickle the object to broadcast")
    body = numpy.frombuffer(pickled, numpy.uint8) if at_root else numpy.empty(length, numpy.uint8)
    body = broadcast(body, root_rank, data_name, process_set)
    return obj if at_root else pickle.loads(body)


def shared_empty(shape: int | Sequence[int], dtype: DTypeLike = numpy.float64) -> Array:
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


__all__ = [
    "Adasum",
    "add_process_set",
    "allgather",
    "allgather_async",
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
    "shared_empty",
    "shutdown",
    "ShutDownError",
    "size",
    "start_timeline",
    "stop_timeline",
    "Sum",
    "synchronize",
]
