# SPDX-License-Identifier: Apache-2.0
"""The asynchronous collectives on torch tensors, and those in place, with Horovod's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from horo._arguments import AVERAGE, resolve_op, resolve_wire
from horo._handles import synchronize
from horo._sets import WORLD, global_process_set, of
from horo.torch._face import TORCH, start_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Union

    from torch import Tensor

    from horo._sets import ProcessSet

    Splits = Union[Sequence[int], Tensor, None]


def new_like(tensor):
    """A new tensor for a result."""
    return torch.empty_like(tensor, requires_grad=False)


# -- Allreduce ------------------------------------------------------------------------------------


def allreduce_async_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> int:
    """Starts reducing `tensor` over all ranks in place. Returns a handle for synchronize()."""
    names = WORLD if process_set is global_process_set else of(process_set)
    handle = start_plain(
        names, tensor, tensor, name, op, prescale_factor, postscale_factor,
        average, wire_dtype, error_feedback,
    )
    if handle is None:
        op = resolve_op(average, op)
        wire = resolve_wire(wire_dtype, error_feedback)
        factors = (prescale_factor, postscale_factor)
        handle = TORCH.start_allreduce(tensor, tensor, names, name, op, *factors, wire)
    return handle


def allreduce_async(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> int:
    """Like allreduce_async_, into a new tensor. `tensor` must not change until the operation
    ends."""
    names = WORLD if process_set is global_process_set else of(process_set)
    target = new_like(tensor)
    handle = start_plain(
        names, tensor, target, name, op, prescale_factor, postscale_factor,
        average, wire_dtype, error_feedback,
    )
    if handle is None:
        op = resolve_op(average, op)
        wire = resolve_wire(wire_dtype, error_feedback)
        factors = (prescale_factor, postscale_factor)
        handle = TORCH.start_allreduce(tensor, target, names, name, op, *factors, wire)
    return handle


def allreduce_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> Tensor:
    """Reduces `tensor` over all ranks in place and returns it."""
    names = WORLD if process_set is global_process_set else of(process_set)
    handle = start_plain(
        names, tensor, tensor, name, op, prescale_factor, postscale_factor,
        average, wire_dtype, error_feedback,
    )
    if handle is None:
        op = resolve_op(average, op)
        wire = resolve_wire(wire_dtype, error_feedback)
        factors = (prescale_factor, postscale_factor)
        handle = TORCH.start_allreduce(tensor, tensor, names, name, op, *factors, wire)
    return synchronize(handle)


def grouped_allreduce_async(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> int:
    """Starts reducing a list of tensors, which become ready together. Returns one handle, whose
    result is a list."""
    names, op = of(process_set), resolve_op(average, op)
    tensors, factors = list(tensors), (prescale_factor, postscale_factor)
    targets = [new_like(tensor) for tensor in tensors]
    wire = resolve_wire(wire_dtype, error_feedback)
    return TORCH.start_allreduces(tensors, targets, names, name, op, factors, wire)


def grouped_allreduce_async_(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> int:
    """Like grouped_allreduce_async, in place."""
    names = of(process_set)
    op, tensors = resolve_op(average, op), list(tensors)
    factors = (prescale_factor, postscale_factor)
    wire = resolve_wire(wire_dtype, error_feedback)
    return TORCH.start_allreduces(tensors, tensors, names, name, op, factors, wire)


def grouped_allreduce_(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> list[Tensor]:
    """Reduces a list of tensors together, in place, and returns the list."""
    factors, wire = (prescale_factor, postscale_factor), (wire_dtype, error_feedback)
    return synchronize(
        grouped_allreduce_async_(tensors, average, name, op, *factors, process_set, *wire)
    )


# -- Reducescatter --------------------------------------------------------------------------------


def reducescatter_async(
    tensor: Tensor,
    name: str | None = None,
    op: int | None = AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts reducing. Each rank gets its rows of the result: dimension 0 is divided in rank order;
    when it does not divide evenly, the first ranks get one row more."""
    names, op = of(process_set), resolve_op(None, op)
    return TORCH.start_reducescatter(tensor, names, name, op, prescale_factor, postscale_factor)


def grouped_reducescatter_async(
    tensors: Iterable[Tensor],
    name: str | None = None,
    op: int | None = AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts several reducescatters together. Returns one handle, whose result is a list."""
    names, op = of(process_set), resolve_op(None, op)
    factors = (prescale_factor, postscale_factor)
    return TORCH.start_reducescatters(list(tensors), names, name, op, factors)


# -- Allgather and alltoall -----------------------------------------------------------------------


def allgather_async(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts concatenating all ranks' tensors along dimension 0, which may differ between ranks."""
    return TORCH.start_allgather(tensor, of(process_set), name)


def grouped_allgather_async(
    tensors: Iterable[Tensor], name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts several allgathers together. Returns one handle, whose result is a list."""
    return TORCH.start_allgathers(list(tensors), of(process_set), name)


def alltoall_async(
    tensor: Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an alltoall. synchronize() returns (tensor, received splits)."""
    return TORCH.start_alltoall(tensor, splits, of(process_set), name)


# -- Broadcast ------------------------------------------------------------------------------------


def broadcast_async(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts copying the root's tensor to all ranks, into a new tensor."""
    names = of(process_set)
    target = new_like(tensor)
    return TORCH.start_broadcast(tensor, target, root_rank, names, name)


def broadcast_async_(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts copying the root's tensor to all ranks, in place."""
    return TORCH.start_broadcast(tensor, tensor, root_rank, of(process_set), name)


def broadcast_(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Copies the root's tensor to all ranks, in place, and returns it."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))
