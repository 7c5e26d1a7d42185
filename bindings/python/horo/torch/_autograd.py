# SPDX-License-Identifier: Apache-2.0
"""The synchronous collectives, through which gradients flow.

allreduce:  the same operation on the gradient; Min, Max and Product have no gradient here.
allgather:  the average of the ranks' gradients, of which each rank takes its own rows.
broadcast:  the average of the ranks' gradients on the root, zero elsewhere.
"""

import torch

from horo import _core
from horo._core import resolve_op, synchronize
from horo._limits import check_process_set
from horo.torch._collectives import (
    grouped_allreduce_async,
    start_allgather,
    start_allreduce,
    start_broadcast,
)
from horo.torch._compression import Compression


def _back_name(name):
    return None if name is None else name + ".backward"


def _linear(op):
    if op not in (_core.AVERAGE, _core.SUM):
        raise NotImplementedError(
            f"allreduce with op={_core.OP_NAMES[op]} has no gradient; use Average, Sum or detach()"
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


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name):
        result, rows = synchronize(start_allgather(tensor, name, want_rows=True))
        ctx.name, ctx.rows = _back_name(name), rows
        return result

    @staticmethod
    def backward(ctx, gradient):
        total = _reduce(gradient.contiguous(), ctx.name, _core.AVERAGE, 1.0, 1.0)
        me = _core.rank()
        start = sum(ctx.rows[:me])
        return total[start : start + ctx.rows[me]], None


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


def broadcast(tensor, root_rank, name=None, process_set=None):
    """The root's tensor, as a new tensor on every rank. Differentiable."""
    check_process_set(process_set)
    if _tracks(tensor):
        return _Broadcast.apply(tensor, root_rank, name)
    target = torch.empty_like(tensor, requires_grad=False)
    return synchronize(start_broadcast(tensor, target, root_rank, name))
