# SPDX-License-Identifier: Apache-2.0
"""Collectives on torch tensors: submit, and wait by handle.

A step in the steady state costs one dictionary look-up, one comparison of the signature and one
call of the C library per tensor. What is not contiguous, complex, or of another device goes through
_parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from horo import _core, _ops
from horo._core import PENDING, resolve_op, submit
from horo._names import declare
from horo._native import ALLREDUCE, BROADCAST, REDUCESCATTER
from horo._sets import WORLD, global_process_set, of
from horo.torch._memory import memory_of
from horo.torch._parts import host_part, landing, like, rows_part, spare_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Union

    from torch import Tensor

    from horo._sets import ProcessSet

    Splits = Union[Sequence[int], Tensor, None]

_DTYPES = {
    getattr(torch, name): name
    for name in (
        "uint8 int8 uint16 int16 int32 int64 float16 float32 float64 bool bfloat16".split()
    )
    if hasattr(torch, name)
}


def dtype_name(dtype):
    """Our name of a torch dtype; the runtime's own message refuses the others."""
    return _DTYPES.get(dtype) or str(dtype)


FACE = _ops.Face(
    pointer=lambda tensor: tensor.data_ptr(),
    dtype=lambda tensor: dtype_name(tensor.dtype),
    nbytes=lambda tensor: tensor.numel() * tensor.element_size(),
    empty=lambda shape, like: torch.empty(shape, dtype=like.dtype, device=like.device),
    memory=memory_of,
)


# -- Allreduce ---------------------------------------------------------------------------------


def reduce_record(tensor, names, name, op, prescale, postscale):
    """The record of an allreduce, declared with this tensor's signature."""
    record = names.records[ALLREDUCE].get(name) or names.record(ALLREDUCE, name)
    signature = (tensor.dtype, tensor.shape, op, prescale, postscale)
    if record.signature != signature:
        dtype = dtype_name(tensor.dtype)
        declare(record, ALLREDUCE, dtype, tensor.shape, op, 0, prescale, postscale)
        record.signature = signature
    return record


def start_allreduce(source, target, names, name, op, prescale, postscale):
    """Submits; `target` may be `source`. Returns the handle."""
    if not source.is_cpu or not source.is_contiguous() or source.is_complex():
        return _start_elsewhere(source, target, names, name, op, prescale, postscale)
    try:
        pointer = source.data_ptr()
    except RuntimeError:
        host_part(source)
        raise
    record = reduce_record(source, names, name, op, prescale, postscale)
    handle = submit(record, pointer, pointer if target is source else target.data_ptr())
    memory = memory_of(source)
    PENDING[handle] = (target, memory if target is source else (memory, memory_of(target)), None)
    return handle


def _start_elsewhere(source, target, names, name, op, prescale, postscale):
    part = host_part(source, op)
    out, finish = landing(target, spare_of(part, source))
    record = reduce_record(part, names, name, op, prescale, postscale)
    handle = submit(record, part.data_ptr(), out.data_ptr())
    PENDING[handle] = (out, (memory_of(part), memory_of(out)), finish)
    return handle


def allreduce_async_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts reducing `tensor` over all ranks in place. Returns a handle for synchronize()."""
    names = WORLD if process_set is global_process_set else of(process_set)
    op = resolve_op(average, op)
    return start_allreduce(tensor, tensor, names, name, op, prescale_factor, postscale_factor)


def allreduce_async(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """As allreduce_async_, into a new tensor; `tensor` must not change before the end."""
    names = WORLD if process_set is global_process_set else of(process_set)
    op = resolve_op(average, op)
    target = torch.empty_like(tensor, requires_grad=False)
    return start_allreduce(tensor, target, names, name, op, prescale_factor, postscale_factor)


def allreduce_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Reduces `tensor` over all ranks in place and returns it."""
    names = WORLD if process_set is global_process_set else of(process_set)
    op = resolve_op(average, op)
    return _core.synchronize(
        start_allreduce(tensor, tensor, names, name, op, prescale_factor, postscale_factor)
    )


def _one_device(tensors):
    """Fails: ValueError (members of a group on several devices)."""
    if len({tensor.device for tensor in tensors}) > 1:
        raise ValueError("the tensors of a group must be on one device")


def _start_group(kind, tensors, targets, names, name, op, factors):
    _one_device(tensors)
    parts = [host_part(tensor, op) for tensor in tensors]
    landings = [landing(target) for target in targets]
    outs, finishes = [out for out, _ in landings], [finish for _, finish in landings]
    return _ops.start_reductions(FACE, names, kind, name, parts, outs, op, factors, finishes)


def start_allreduces(tensors, names, name, op, factors):
    """Submits a group, into new tensors. Returns one handle."""
    targets = [torch.empty_like(tensor, requires_grad=False) for tensor in tensors]
    return _start_group(ALLREDUCE, tensors, targets, names, name, op, factors)


def grouped_allreduce_async(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts reducing a list of tensors, which become ready together; one handle, whose result is
    a list."""
    names, op = of(process_set), resolve_op(average, op)
    factors = (prescale_factor, postscale_factor)
    return start_allreduces(list(tensors), names, name, op, factors)


def grouped_allreduce_async_(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """As grouped_allreduce_async, in place."""
    names = of(process_set)
    op, tensors = resolve_op(average, op), list(tensors)
    factors = (prescale_factor, postscale_factor)
    return _start_group(ALLREDUCE, tensors, tensors, names, name, op, factors)


def grouped_allreduce_(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """Reduces a list of tensors together, in place, and returns the list."""
    return _core.synchronize(
        grouped_allreduce_async_(
            tensors, average, name, op, prescale_factor, postscale_factor, process_set
        )
    )


# -- Reducescatter -----------------------------------------------------------------------------


def start_reducescatter(tensor, names, name, op, prescale, postscale):
    """Submits. Returns the handle."""
    part = host_part(tensor, op)
    out, finish = landing(_ops.scattered(FACE, names, tensor))
    record = names.record(REDUCESCATTER, name)
    reduction = _ops.reduction(FACE, record, REDUCESCATTER, part, out, op, prescale, postscale)
    handle = _core.submit_part(reduction)
    PENDING[handle] = (out, (memory_of(part), memory_of(out)), finish)
    return handle


def start_reducescatters(tensors, names, name, op, factors):
    """As start_reducescatter for a group, with one handle."""
    targets = [_ops.scattered(FACE, names, tensor) for tensor in tensors]
    return _start_group(REDUCESCATTER, tensors, targets, names, name, op, factors)


def reducescatter_async(
    tensor: Tensor,
    name: str | None = None,
    op: int | None = _core.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts reducing; each rank gets its rows of the result: dimension 0 is dealt out in rank
    order, rows that are over one each to the first ranks."""
    names, op = of(process_set), resolve_op(None, op)
    return start_reducescatter(tensor, names, name, op, prescale_factor, postscale_factor)


def grouped_reducescatter_async(
    tensors: Iterable[Tensor],
    name: str | None = None,
    op: int | None = _core.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts several reducescatters together; one handle, whose result is a list."""
    names, op = of(process_set), resolve_op(None, op)
    factors = (prescale_factor, postscale_factor)
    return start_reducescatters(list(tensors), names, name, op, factors)


# -- Allgather and alltoall --------------------------------------------------------------------


def _give(tensor, want_rows):
    def give(result, rows):
        result = like(result, tensor)
        return (result, rows) if want_rows else result

    return give


def start_allgather(tensor, names, name, want_rows=False):
    """Submits; the result is the tensor, with the rows of each rank when wanted."""
    part = rows_part(tensor, "allgather")
    return _ops.start_allgather(FACE, names, name, part, _give(tensor, want_rows))


def start_allgathers(tensors, names, name, want_rows=False):
    """As start_allgather for several, with one handle."""
    tensors = list(tensors)
    _one_device(tensors)
    parts = [rows_part(tensor, "allgather") for tensor in tensors]
    gives = [_give(tensor, want_rows) for tensor in tensors]
    return _ops.start_allgathers(FACE, names, name, parts, gives)


def allgather_async(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts concatenating all ranks' tensors along dimension 0, which may differ between ranks."""
    return start_allgather(tensor, of(process_set), name)


def grouped_allgather_async(
    tensors: Iterable[Tensor], name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts several allgathers together; one handle, whose result is a list."""
    return start_allgathers(tensors, of(process_set), name)


def start_alltoall(tensor, splits, names, name):
    """Submits; the result is (tensor, received splits), these where `splits` is."""
    where = splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu")
    if isinstance(splits, torch.Tensor):
        splits = splits.tolist() if splits.dim() == 1 else [None]
    part = rows_part(tensor, "alltoall")

    def give(result, rows):
        return like(result, tensor), torch.tensor(rows, dtype=torch.int32, device=where)

    numbers = _ops.whole_numbers(splits)
    return _ops.start_alltoall(FACE, names, name, part, numbers, give)


def alltoall_async(
    tensor: Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an alltoall; synchronize() gives (tensor, received splits)."""
    return start_alltoall(tensor, splits, of(process_set), name)


# -- Broadcast ---------------------------------------------------------------------------------


def start_broadcast(source, target, root_rank, names, name):
    """Submits; `target` may be `source`. Returns the handle."""
    part = host_part(source)
    out, finish = landing(target, spare_of(part, source))
    record = names.record(BROADCAST, name)
    return _ops.start_broadcast(FACE, record, part, out, root_rank, finish)


def broadcast_async(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts copying the root's tensor to all ranks, into a new tensor."""
    names = of(process_set)
    target = torch.empty_like(tensor, requires_grad=False)
    return start_broadcast(tensor, target, root_rank, names, name)


def broadcast_async_(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts copying the root's tensor to all ranks, in place."""
    return start_broadcast(tensor, tensor, root_rank, of(process_set), name)


def broadcast_(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Copies the root's tensor to all ranks, in place, and returns it."""
    return _core.synchronize(broadcast_async_(tensor, root_rank, name, process_set))
