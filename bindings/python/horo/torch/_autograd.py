# SPDX-License-Identifier: Apache-2.0
"""The synchronous collectives, through which gradients flow.

allreduce:  the same operation on the gradient; Min, Max and Product have no gradient here.
allgather:  the average of the ranks' gradients, of which each rank takes its own rows.
broadcast:  the average of the ranks' gradients on the root, zero elsewhere.
reducescatter: the ranks' gradients gathered; of a sum, times the number of ranks.
alltoall:   each row's gradient goes back to where the row came from.
"""

import torch

from horo import _core
from horo._core import resolve_op, synchronize
from horo._limits import check_process_set
from horo.torch._collectives import (
    grouped_allreduce_async,
    grouped_reducescatter_async,
    start_allgather,
    start_allgathers,
    start_allreduce,
    start_alltoall,
    start_broadcast,
    start_reducescatter,
)
from horo.torch._compression import Compression


def _back_name(name):
    return None if name is None else name + ".backward"


def _linear(op, what="allreduce"):
    if op in (_core.AVERAGE, _core.SUM) or (op == _core.ADASUM and what == "allreduce"):
        return
    raise NotImplementedError(
        f"{what} with op={_core.OP_NAMES[op]} has no gradient; use Average, Sum or detach()"
    )


def _reduce(tensor, name, op, prescale, postscale):
    target = torch.empty_like(tensor, requires_grad=False)
    return synchronize(start_allreduce(tensor, target, name, op, prescale, postscale))


def _tracks(tensor):
    return tensor.requires_grad and torch.is_grad_enabled()


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale, postscale):
        ctx.arguments = (_back_name(name), op, prescale, postscale)
        return _reduce(tensor, name, op, prescale, postscale)

    @staticmethod
    def backward(ctx, gradient):
        return _reduce(gradient.contiguous(), *ctx.arguments), None, None, None, None


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale, postscale, *tensors):
        ctx.arguments = (_back_name(name), op, prescale, postscale)
        handle = grouped_allreduce_async(tensors, None, name, op, prescale, postscale)
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx, *gradients):
        name, op, prescale, postscale = ctx.arguments
        parts = [gradient.contiguous() for gradient in gradients]
        handle = grouped_allreduce_async(parts, None, name, op, prescale, postscale)
        return (None, None, None, None, *synchronize(handle))


def _own_rows(total, rows):
    me = _core.rank()
    start = sum(rows[:me])
    return total[start : start + rows[me]]


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name):
        result, rows = synchronize(start_allgather(tensor, name, want_rows=True))
        ctx.name, ctx.rows = _back_name(name), rows
        return result

    @staticmethod
    def backward(ctx, gradient):
        total = _reduce(gradient.contiguous(), ctx.name, _core.AVERAGE, 1.0, 1.0)
        return _own_rows(total, ctx.rows), None


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, *tensors):
        pairs = synchronize(start_allgathers(tensors, name, want_rows=True))
        ctx.name, ctx.rows = _back_name(name), [rows for _, rows in pairs]
        return tuple(result for result, _ in pairs)

    @staticmethod
    def backward(ctx, *gradients):
        parts = [gradient.contiguous() for gradient in gradients]
        totals = synchronize(grouped_allreduce_async(parts, None, ctx.name, _core.AVERAGE))
        return (None, *(_own_rows(total, rows) for total, rows in zip(totals, ctx.rows)))


def _scatter_scale(op, prescale, postscale):
    return (_core.size() if op == _core.SUM else 1) * prescale * postscale


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale, postscale):
        ctx.name, ctx.scale = _back_name(name), _scatter_scale(op, prescale, postscale)
        return synchronize(start_reducescatter(tensor, name, op, prescale, postscale))

    @staticmethod
    def backward(ctx, gradient):
        total = synchronize(start_allgather(gradient.contiguous(), ctx.name))
        return total * ctx.scale, None, None, None, None


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale, postscale, *tensors):
        ctx.name, ctx.scale = _back_name(name), _scatter_scale(op, prescale, postscale)
        handle = grouped_reducescatter_async(tensors, name, op, None, prescale, postscale)
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx, *gradients):
        totals = synchronize(start_allgathers([g.contiguous() for g in gradients], ctx.name))
        return (None, None, None, None, *(total * ctx.scale for total in totals))


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name):
        result, received = synchronize(start_alltoall(tensor, splits, name))
        ctx.name, ctx.received, ctx.rows = _back_name(name), received.tolist(), tensor.shape[0]
        ctx.mark_non_differentiable(received)
        return result, received

    @staticmethod
    def backward(ctx, gradient, _received):
        back, _ = synchronize(start_alltoall(gradient.contiguous(), ctx.received, ctx.name))
        if back.shape[0] < ctx.rows:  # rows that the splits left behind
            rest = back.new_zeros((ctx.rows - back.shape[0],) + tuple(back.shape[1:]))
            back = torch.cat([back, rest])
        return back, None, None


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name):
        ctx.root, ctx.name = root_rank, _back_name(name)
        target = torch.empty_like(tensor, requires_grad=False)
        return synchronize(start_broadcast(tensor, target, root_rank, name))

    @staticmethod
    def backward(ctx, gradient):
        total = _reduce(gradient.contiguous(), ctx.name, _core.AVERAGE, 1.0, 1.0)
        if _core.rank() != ctx.root:
            total.zero_()
        return total, None, None


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """Reduces `tensor` over all ranks into a new tensor. Differentiable."""
    if process_set is not None:
        check_process_set(process_set)
    op = resolve_op(average, op)
    compressed, context = compression.compress(tensor)
    if _tracks(compressed):
        _linear(op)
        result = _Allreduce.apply(compressed, name, op, prescale_factor, postscale_factor)
    else:
        result = _reduce(compressed, name, op, prescale_factor, postscale_factor)
    return compression.decompress(result, context)


def grouped_allreduce(
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """Reduces a list of tensors together into a list of new ones. Differentiable."""
    check_process_set(process_set)
    op = resolve_op(average, op)
    pairs = [compression.compress(tensor) for tensor in tensors]
    parts = [part for part, _ in pairs]
    factors = (prescale_factor, postscale_factor)
    if any(_tracks(part) for part in parts):
        _linear(op)
        results = _GroupedAllreduce.apply(name, op, *factors, *parts)
    else:
        results = synchronize(grouped_allreduce_async(parts, None, name, op, *factors))
    return [
        compression.decompress(result, context) for result, (_, context) in zip(results, pairs)
    ]


def allgather(tensor, name=None, process_set=None):
    """All ranks' tensors, concatenated along dimension 0 in rank order. Differentiable."""
    check_process_set(process_set)
    if _tracks(tensor):
        return _Allgather.apply(tensor, name)
    return synchronize(start_allgather(tensor, name))


def grouped_allgather(tensors, name=None, process_set=None):
    """Several allgathers together: a list. Differentiable."""
    check_process_set(process_set)
    tensors = list(tensors)
    if any(_tracks(tensor) for tensor in tensors):
        return list(_GroupedAllgather.apply(name, *tensors))
    return synchronize(start_allgathers(tensors, name))


def reducescatter(
    tensor,
    name=None,
    compression=Compression.none,
    op=_core.AVERAGE,
    process_set=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """This rank's rows of what allreduce gives: dimension 0 is dealt out in rank order, rows that
    are over one each to the first ranks. Differentiable."""
    check_process_set(process_set)
    op = resolve_op(None, op)
    part, context = compression.compress(tensor)
    if _tracks(part):
        _linear(op, "reducescatter")
        result = _Reducescatter.apply(part, name, op, prescale_factor, postscale_factor)
    else:
        handle = start_reducescatter(part, name, op, prescale_factor, postscale_factor)
        result = synchronize(handle)
    return compression.decompress(result, context)


def grouped_reducescatter(
    tensors,
    name=None,
    compression=Compression.none,
    op=_core.AVERAGE,
    process_set=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Several reducescatters together: a list. Differentiable."""
    check_process_set(process_set)
    op = resolve_op(None, op)
    pairs = [compression.compress(tensor) for tensor in tensors]
    parts = [part for part, _ in pairs]
    factors = (prescale_factor, postscale_factor)
    if any(_tracks(part) for part in parts):
        _linear(op, "reducescatter")
        results = _GroupedReducescatter.apply(name, op, *factors, *parts)
    else:
        results = synchronize(grouped_reducescatter_async(parts, name, op, None, *factors))
    return [
        compression.decompress(result, context) for result, (_, context) in zip(results, pairs)
    ]


def alltoall(tensor, splits=None, name=None, process_set=None):
    """Sends `splits[r]` rows to rank r, equally many to all when there are no splits, and gives
    the rows received, in rank order; with splits (rows, how many came from each rank).
    Differentiable."""
    check_process_set(process_set)
    if _tracks(tensor):
        result, received = _Alltoall.apply(tensor, splits, name)
    else:
        result, received = synchronize(start_alltoall(tensor, splits, name))
    return result if splits is None else (result, received)


def broadcast(tensor, root_rank, name=None, process_set=None):
    """The root's tensor, as a new tensor on every rank. Differentiable."""
    check_process_set(process_set)
    if _tracks(tensor):
        return _Broadcast.apply(tensor, root_rank, name)
    target = torch.empty_like(tensor, requires_grad=False)
    return synchronize(start_broadcast(tensor, target, root_rank, name))
