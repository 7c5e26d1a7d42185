# SPDX-License-Identifier: Apache-2.0
"""Collectives on MXNet's arrays. Each call returns when its result is there.

All ranks call them in one order, since none returns before the other ranks have made the same call.
`priority` orders MXNet's own queue in programs for Horovod; it has no effect here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horo._arguments import AVERAGE, resolve_op
from horo._handles import synchronize
from horo._sets import global_process_set, of
from horo.mxnet._face import FACE, MXNET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from horo._sets import ProcessSet


def allreduce(
    tensor: Any,
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> Any:
    """Returns a new array: `tensor` reduced over all ranks. Without op, the average."""
    source = FACE.array(tensor)
    op = resolve_op(average, op)
    factors = (prescale_factor, postscale_factor)
    target = FACE.empty_like(source)
    return synchronize(
        MXNET.start_allreduce(source, target, of(process_set), name, op, *factors)
    )


def allreduce_(
    tensor: Any,
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> Any:
    """Reduces `tensor` over all ranks in place and returns it."""
    source = FACE.array(tensor)
    op = resolve_op(average, op)
    factors = (prescale_factor, postscale_factor)
    return synchronize(
        MXNET.start_allreduce(source, source, of(process_set), name, op, *factors)
    )


def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> list[Any]:
    """Like allreduce() for several arrays, which are reduced together."""
    sources = [FACE.array(tensor) for tensor in tensors]
    op = resolve_op(average, op)
    targets = [FACE.empty_like(source) for source in sources]
    factors = (prescale_factor, postscale_factor)
    return _grouped(sources, targets, of(process_set), name, op, factors)


def grouped_allreduce_(
    tensors: Sequence[Any],
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> list[Any]:
    """Like allreduce_() for several arrays, which are reduced together."""
    sources = [FACE.array(tensor) for tensor in tensors]
    op = resolve_op(average, op)
    factors = (prescale_factor, postscale_factor)
    return _grouped(sources, sources, of(process_set), name, op, factors)


def _grouped(sources, targets, names, name, op, factors):
    return synchronize(MXNET.start_allreduces(sources, targets, names, name, op, factors))


def allgather(
    tensor: Any,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns the rows of all ranks, in rank order. Ranks may have different numbers of rows."""
    return synchronize(MXNET.start_allgather(FACE.array(tensor), of(process_set), name))


def grouped_allgather(
    tensors: Sequence[Any],
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Like allgather() for several arrays."""
    sources = [FACE.array(tensor) for tensor in tensors]
    return synchronize(MXNET.start_allgathers(sources, of(process_set), name))


def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns a new array with the values of rank `root_rank`."""
    source = FACE.array(tensor)
    target = FACE.empty_like(source)
    return synchronize(MXNET.start_broadcast(source, target, root_rank, of(process_set), name))


def broadcast_(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Gives `tensor` the values of rank `root_rank` and returns it."""
    source = FACE.array(tensor)
    return synchronize(MXNET.start_broadcast(source, source, root_rank, of(process_set), name))


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Sends `splits[i]` rows to rank i, or equal parts without splits, and returns the rows that
    the ranks have sent here. With splits: the pair of these rows and their numbers by rank."""
    source = FACE.array(tensor)
    rows, counts = synchronize(MXNET.start_alltoall(source, splits, of(process_set), name))
    return rows if splits is None else (rows, counts)


def reducescatter(
    tensor: Any,
    op: int = AVERAGE,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Reduces over all ranks and returns this rank's rows of the result."""
    source, names = FACE.array(tensor), of(process_set)
    op, factors = resolve_op(None, op), (prescale_factor, postscale_factor)
    return synchronize(MXNET.start_reducescatter(source, names, name, op, *factors))


def grouped_reducescatter(
    tensors: Sequence[Any],
    op: int = AVERAGE,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Any]:
    """Like reducescatter() for several arrays."""
    sources, names = [FACE.array(tensor) for tensor in tensors], of(process_set)
    op, factors = resolve_op(None, op), (prescale_factor, postscale_factor)
    return synchronize(MXNET.start_reducescatters(sources, names, name, op, factors))
