# SPDX-License-Identifier: Apache-2.0
"""The synchronous collectives, which are differentiable.

Their gradients are:

allreduce:     the same operation on the gradient; Min, Max and Product have no gradient.
allgather:     the average of the ranks' gradients; each rank takes its own rows.
broadcast:     the average of the ranks' gradients on the root, zero on the other ranks.
reducescatter: the ranks' gradients, gathered; for a sum, multiplied by the number of ranks.
alltoall:      each row's gradient goes back to the rank that sent the row.

Each backward() uses these operations again, so that gradients have gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from horo import _job
from horo._arguments import ADASUM, AVERAGE, BY_KNOBS, OP_NAMES, SUM, resolve_op, resolve_wire
from horo._handles import synchronize
from horo._sets import WORLD, global_process_set, of
from horo.torch._collectives import new_like
from horo.torch._compression import Compression
from horo.torch._face import TORCH, need_tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Union

    from torch import Tensor

    from horo._sets import ProcessSet
    from horo.torch._collectives import Splits
    from horo.torch._compression import Compressor


def _back_name(name):
    return None if name is None else name + ".backward"


def _linear(op, what="allreduce"):
    if op in (AVERAGE, SUM) or (op == ADASUM and what == "allreduce"):
        return
    raise NotImplementedError(
        f"{what} with op={OP_NAMES[op]} has no gradient; use Average, Sum or detach()"
    )


def _reduce(tensor, names, name, op, *scales_and_wire):
    target = new_like(tensor)
    return synchronize(TORCH.start_allreduce(tensor, target, names, name, op, *scales_and_wire))


def _reduce_all(tensors, names, name, op, factors, wire):
    targets = [new_like(tensor) for tensor in tensors]
    return synchronize(TORCH.start_allreduces(tensors, targets, names, name, op, factors, wire))


def _tracks(tensor):
    need_tensor(tensor)
    return tensor.requires_grad and torch.is_grad_enabled()


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, names, name, op, prescale, postscale, wire):
        ctx.arguments = (names, _back_name(name), op, prescale, postscale, wire)
        return _reduce(tensor, names, name, op, prescale, postscale, wire)

    @staticmethod
    def backward(ctx, gradient):
        return (_Allreduce.apply(gradient.contiguous(), *ctx.arguments),) + (None,) * 6


def _contiguous(gradients):
    return [gradient.contiguous() for gradient in gradients]


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, names, name, op, factors, wire, *tensors):
        ctx.arguments = (names, _back_name(name), op, factors, wire)
        return tuple(_reduce_all(tensors, names, name, op, factors, wire))

    @staticmethod
    def backward(ctx, *gradients):
        reduced = _GroupedAllreduce.apply(*ctx.arguments, *_contiguous(gradients))
        return (None, None, None, None, None, *reduced)


def _average(gradient, names, name):
    return _Allreduce.apply(gradient.contiguous(), names, name, AVERAGE, 1.0, 1.0, BY_KNOBS)


def _own_rows(total, names, rows):
    me = names.rank()
    start = sum(rows[:me])
    return total[start : start + rows[me]]


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, names, name):
        result, rows = synchronize(TORCH.start_allgather(tensor, names, name, want_rows=True))
        ctx.names, ctx.name, ctx.rows = names, _back_name(name), rows
        return result

    @staticmethod
    def backward(ctx, gradient):
        total = _average(gradient, ctx.names, ctx.name)
        return _own_rows(total, ctx.names, ctx.rows), None, None


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, names, name, *tensors):
        pairs = synchronize(TORCH.start_allgathers(tensors, names, name, want_rows=True))
        ctx.names, ctx.name, ctx.rows = names, _back_name(name), [rows for _, rows in pairs]
        return tuple(result for result, _ in pairs)

    @staticmethod
    def backward(ctx, *gradients):
        average = (ctx.names, ctx.name, AVERAGE, (1.0, 1.0), BY_KNOBS)
        totals = _GroupedAllreduce.apply(*average, *_contiguous(gradients))
        own = (_own_rows(total, ctx.names, rows) for total, rows in zip(totals, ctx.rows))
        return (None, None, *own)


def _scatter_scale(names, op, factors):
    return (names.size() if op == SUM else 1) * factors[0] * factors[1]


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, names, name, op, factors):
        ctx.names, ctx.name = names, _back_name(name)
        ctx.scale = _scatter_scale(names, op, factors)
        return synchronize(TORCH.start_reducescatter(tensor, names, name, op, *factors))

    @staticmethod
    def backward(ctx, gradient):
        total = _Allgather.apply(gradient.contiguous(), ctx.names, ctx.name)
        return total * ctx.scale, None, None, None, None


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, names, name, op, factors, *tensors):
        ctx.names, ctx.name = names, _back_name(name)
        ctx.scale = _scatter_scale(names, op, factors)
        return tuple(synchronize(TORCH.start_reducescatters(tensors, names, name, op, factors)))

    @staticmethod
    def backward(ctx, *gradients):
        totals = _GroupedAllgather.apply(ctx.names, ctx.name, *_contiguous(gradients))
        return (None, None, None, None, *(total * ctx.scale for total in totals))


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, names, name):
        result, received = synchronize(TORCH.start_alltoall(tensor, splits, names, name))
        ctx.names, ctx.name = names, _back_name(name)
        ctx.received, ctx.rows = received.tolist(), tensor.shape[0]
        ctx.mark_non_differentiable(received)
        return result, received

    @staticmethod
    def backward(ctx, gradient, _received):
        back, _ = _Alltoall.apply(gradient.contiguous(), ctx.received, ctx.names, ctx.name)
        if back.shape[0] < ctx.rows:  # the splits did not send all rows
            rest = back.new_zeros((ctx.rows - back.shape[0],) + tuple(back.shape[1:]))
            back = torch.cat([back, rest])
        return back, None, None, None


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, names, name):
        ctx.root, ctx.names, ctx.name = root_rank, names, _back_name(name)
        target = new_like(tensor)
        return synchronize(TORCH.start_broadcast(tensor, target, root_rank, names, name))

    @staticmethod
    def backward(ctx, gradient):
        total = _average(gradient, ctx.names, ctx.name)
        if _job.rank() != ctx.root:  # keeps the average's graph: all ranks take part in its backward
            total = total.masked_fill(torch.ones((), dtype=torch.bool, device=total.device), 0)
        return total, None, None, None


def allreduce(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> Tensor:
    """Reduces `tensor` over all ranks into a new tensor. Differentiable."""
    names = WORLD if process_set is global_process_set else of(process_set)
    op = resolve_op(average, op)
    how = (prescale_factor, postscale_factor, resolve_wire(wire_dtype, error_feedback))
    compressed, context = compression.compress(tensor)
    if _tracks(compressed):
        _linear(op)
        result = _Allreduce.apply(compressed, names, name, op, *how)
    else:
        result = _reduce(compressed, names, name, op, *how)
    return compression.decompress(result, context)


def grouped_allreduce(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> list[Tensor]:
    """Reduces a list of tensors together and returns a list of new tensors. Differentiable."""
    names, op = of(process_set), resolve_op(average, op)
    pairs = [compression.compress(tensor) for tensor in tensors]
    parts = [part for part, _ in pairs]
    factors = (prescale_factor, postscale_factor)
    wire = resolve_wire(wire_dtype, error_feedback)
    if any(_tracks(part) for part in parts):
        _linear(op)
        results = _GroupedAllreduce.apply(names, name, op, factors, wire, *parts)
    else:
        results = _reduce_all(parts, names, name, op, factors, wire)
    return [
        compression.decompress(result, context) for result, (_, context) in zip(results, pairs)
    ]


def allgather(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    """The tensors of all ranks, concatenated along dimension 0 in rank order. Differentiable."""
    names = of(process_set)
    if _tracks(tensor):
        return _Allgather.apply(tensor, names, name)
    return synchronize(TORCH.start_allgather(tensor, names, name))


def grouped_allgather(
    tensors: Iterable[Tensor], name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Tensor]:
    """Does several allgathers together and returns a list. Differentiable."""
    names, tensors = of(process_set), list(tensors)
    if any(_tracks(tensor) for tensor in tensors):
        return list(_GroupedAllgather.apply(names, name, *tensors))
    return synchronize(TORCH.start_allgathers(tensors, names, name))


def reducescatter(
    tensor: Tensor,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """Reduces like allreduce and returns this rank's rows. Dimension 0 is divided in rank order;
    when it does not divide evenly, the first ranks get one row more. Differentiable."""
    names, op = of(process_set), resolve_op(None, op)
    factors = (prescale_factor, postscale_factor)
    part, context = compression.compress(tensor)
    if _tracks(part):
        _linear(op, "reducescatter")
        result = _Reducescatter.apply(part, names, name, op, factors)
    else:
        result = synchronize(TORCH.start_reducescatter(part, names, name, op, *factors))
    return compression.decompress(result, context)


def grouped_reducescatter(
    tensors: Iterable[Tensor],
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Tensor]:
    """Does several reducescatters together and returns a list. Differentiable."""
    names, op = of(process_set), resolve_op(None, op)
    pairs = [compression.compress(tensor) for tensor in tensors]
    parts = [part for part, _ in pairs]
    factors = (prescale_factor, postscale_factor)
    if any(_tracks(part) for part in parts):
        _linear(op, "reducescatter")
        results = _GroupedReducescatter.apply(names, name, op, factors, *parts)
    else:
        results = synchronize(TORCH.start_reducescatters(parts, names, name, op, factors))
    return [
        compression.decompress(result, context) for result, (_, context) in zip(results, pairs)
    ]


def alltoall(
    tensor: Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Sends `splits[r]` rows to rank r, or the same number of rows to every rank when there are no
    splits. Returns the received rows in rank order; with splits, the pair (rows, number of rows
    received from each rank). Differentiable."""
    names = of(process_set)
    if _tracks(tensor):
        result, received = _Alltoall.apply(tensor, splits, names, name)
    else:
        result, received = synchronize(TORCH.start_alltoall(tensor, splits, names, name))
    return result if splits is None else (result, received)


def broadcast(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Returns the root's tensor on every rank, as a new one. Differentiable."""
    names = of(process_set)
    if _tracks(tensor):
        return _Broadcast.apply(tensor, root_rank, names, name)
    target = new_like(tensor)
    return synchronize(TORCH.start_broadcast(tensor, target, root_rank, names, name))
