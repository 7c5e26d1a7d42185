# SPDX-License-Identifier: Apache-2.0
"""Collectives that the runtime does not have: bitwise and sparse reductions, and lists of tensors of
different sizes. They gather, and each rank computes its own result."""

from __future__ import annotations

import ctypes

import torch

from horo._native import ALLREDUCE
from horo.torch.distributed import _calls, _collectives
from horo.torch.distributed._tensors import BITWISE, land, nbytes, op_name, plain
from horo.torch.distributed._work import HoroWork


def _folded(gathered, name):
    result = gathered[0].clone()
    for row in gathered[1:]:
        result = BITWISE[name](result, row)
    return result


def _gathered_bits(group, source, name):
    """(operation, the tensor that it gathers into)."""
    if source.dtype.is_floating_point or source.dtype.is_complex:
        raise ValueError(f"horo: ReduceOp.{name} is not defined for tensors of {source.dtype}")
    gathered = torch.empty((group.size(), source.numel()), dtype=source.dtype)
    return _calls.allgather(group, source, nbytes(source), gathered), gathered


def allreduce_bits(group, tensor, name, root=None):
    """`root`: only this rank of the group receives the result."""
    operation, gathered = _gathered_bits(group, plain(tensor), name)
    if root is None or root == group.rank():
        operation.then(lambda: _collectives.put(_folded(gathered, name), tensor))
    return HoroWork(group, [operation], [tensor])


def reduce_scatter_bits(group, output, source, name):
    operation, gathered = _gathered_bits(group, source, name)
    first = output.numel() * group.rank()

    def finish():
        _collectives.put(_folded(gathered[:, first : first + output.numel()], name), output)

    operation.then(finish)
    return HoroWork(group, [operation], [output])


def reduce_scatter_uneven(group, output, source, sources, op):
    """`source`: all of `sources`, which differ in size, in a row."""
    name, factor, code, scales = _collectives.reduction(source.dtype, op)
    first = sum(other.numel() for other in sources[: group.rank()])
    shape = (source.numel() * factor,)
    operation = _calls.reduce(group, source, source, ALLREDUCE, shape, name, code, scales)
    operation.then(lambda: _collectives.put(source[first : first + output.numel()], output))
    return HoroWork(group, [operation], [output])


def _copy_bytes(address, length, target):
    """Bytes at an address into a new or plain tensor."""
    if length:
        ctypes.memmove(target.data_ptr(), address, length)
    return target


def allgather_uneven(group, outputs, source):
    """Into tensors of different sizes."""

    def give(address, lengths):
        for output, length in zip(outputs, lengths):
            if length != nbytes(output):
                raise ValueError(f"horo: a rank sent {length} bytes, and there is room for {nbytes(output)}")
            row = _copy_bytes(address, length, torch.empty(output.shape, dtype=output.dtype))
            land(row, output)
            address = (address or 0) + length

    total = sum(nbytes(output) for output in outputs)
    return _calls.allgather_rows(group, source, nbytes(source), f"u.{total}", give)


def allreduce_sparse(group, tensor, op):
    """A sum of sparse tensors, as one with the elements of all ranks."""
    name = op_name(op)
    if name not in ("SUM", "AVG") or tensor.device.type != "cpu" or not tensor.is_sparse:
        raise ValueError(f"horo: ReduceOp.{name} of sparse tensors is not supported; use SUM, on the CPU")
    own = tensor.coalesce()
    indices = own.indices().t().contiguous()
    values = own.values().contiguous()
    rows = {}

    def keep(what, like):
        def give(address, lengths):
            shape = (sum(lengths) // max(1, nbytes(like[:1])), *like.shape[1:])
            rows[what] = _copy_bytes(address, sum(lengths), torch.empty(shape, dtype=like.dtype))

        return give

    text = f"{tuple(tensor.shape)}.{values.dtype}"
    wide = torch.empty((1, *indices.shape[1:]), dtype=indices.dtype)
    long = torch.empty((1, *values.shape[1:]), dtype=values.dtype)
    operations = [
        _calls.allgather_rows(group, indices, nbytes(indices), f"i.{text}", keep("indices", wide)),
        _calls.allgather_rows(group, values, nbytes(values), f"x.{text}", keep("values", long)),
    ]

    def finish():
        total = torch.sparse_coo_tensor(rows["indices"].t(), rows["values"], tensor.shape).coalesce()
        if name == "AVG":
            total = total / group.size()
        with torch.no_grad():  # a detached sparse tensor would change alone
            tensor.copy_(total)

    return HoroWork(group, operations, [tensor], after=finish)


