# SPDX-License-Identifier: Apache-2.0
"""The collectives of a group, on lists of tensors as torch passes them. Each returns a HoroWork."""

from __future__ import annotations

import torch

from horo._native import ALLREDUCE, REDUCESCATTER
from horo.torch.distributed import _calls, _special
from horo.torch.distributed._tensors import (
    BITWISE,
    REDUCED,
    check,
    land,
    nbytes,
    one,
    op_code,
    op_name,
    plain,
    room_for,
)
from horo.torch.distributed._work import HoroWork


def landing(operation, room, tensor):
    """Copies the result from `room` to `tensor` when the operation is done."""
    if room is not tensor:
        operation.then(lambda: land(room, tensor))
    return operation


# -- Reductions -----------------------------------------------------------------------------------


def reduction(dtype, op):
    """(name of the runtime's type, factor of elements, operation, scales). Fails: ValueError."""
    known = REDUCED.get(dtype)
    if known is None:
        raise ValueError(f"horo: tensors of {dtype} cannot be reduced; convert them first")
    name = op_name(op)
    if name != "PREMUL_SUM":
        return known[0], known[1], op_code(name, dtype), (1.0, 1.0)
    factor = getattr(op, "factor", None)
    if not isinstance(factor, (int, float)):
        raise ValueError("horo: ReduceOp.PREMUL_SUM is supported with a number as its factor")
    return known[0], known[1], op_code("SUM", dtype), (float(factor), 1.0)


def start_allreduce(group, tensor, op, into=None):
    """One allreduce; `into`: another tensor for the result."""
    name, factor, code, scales = reduction(tensor.dtype, op)
    source = plain(tensor)
    target = source if into is None else into
    shape = (tensor.numel() * factor,)
    operation = _calls.reduce(group, source, target, ALLREDUCE, shape, name, code, scales)
    return operation if into is not None else landing(operation, source, tensor)


def allreduce(group, tensors, op):
    tensor = tensors[0]
    if tensor.is_sparse:
        return _special.allreduce_sparse(group, tensor, op)
    one(tensors)
    if op_name(op) in BITWISE:
        return _special.allreduce_bits(group, tensor, op_name(op))
    return HoroWork(group, [start_allreduce(group, tensor, op)], tensors)


def allreduce_coalesced(group, tensors, op):
    for tensor in tensors:
        check(tensor)
    if op_name(op) in BITWISE:
        works = [_special.allreduce_bits(group, tensor, op_name(op)) for tensor in tensors]
        return joined(group, works, tensors)
    return HoroWork(group, [start_allreduce(group, tensor, op) for tensor in tensors], tensors)


def reduce(group, tensors, op, root):
    tensor = one(tensors)
    if op_name(op) in BITWISE:
        return _special.allreduce_bits(group, tensor, op_name(op), root)
    if group.rank() == root:
        return HoroWork(group, [start_allreduce(group, tensor, op)], tensors)
    aside = torch.empty(tensor.shape, dtype=tensor.dtype)  # the others keep their tensors
    return HoroWork(group, [start_allreduce(group, tensor, op, aside)], tensors)


def start_reduce_scatter(group, output, source, op):
    """`source` is plain and holds as many rows as there are ranks, of the size of `output`."""
    name, factor, code, scales = reduction(source.dtype, op)
    if source.numel() != output.numel() * group.size() or source.dtype != output.dtype:
        raise ValueError(
            f"horo: reduce_scatter of {source.numel()} elements of {source.dtype} on {group.size()} ranks into "
            f"{output.numel()} elements of {output.dtype}: the input must be {group.size()} times the output"
        )
    room = room_for(output)
    shape = (group.size(), output.numel() * factor)
    operation = _calls.reduce(group, source, room, REDUCESCATTER, shape, name, code, scales)
    return landing(operation, room, output)


def reduce_scatter_single(group, output, source, op):
    check(output)
    check(source)
    if op_name(op) in BITWISE:
        return _special.reduce_scatter_bits(group, output, plain(source), op_name(op))
    return HoroWork(group, [start_reduce_scatter(group, output, plain(source), op)], [output])


def reduce_scatter_single_coalesced(group, outputs, sources, op):
    works = [reduce_scatter_single(group, *pair, op) for pair in zip(outputs, sources)]
    return joined(group, works, outputs)


def reduce_scatter(group, outputs, source_lists, op):
    output, sources = one(outputs), source_lists[0]
    for source in sources:
        check(source)
    source = torch.cat([plain(source).reshape(-1) for source in sources])
    if any(other.numel() != output.numel() for other in sources):
        return _special.reduce_scatter_uneven(group, output, source, sources, op)
    return reduce_scatter_single(group, output, source, op)


# -- Moving ----------------------------------------------------------------------------------------


def broadcast(group, tensors, root):
    check(tensors[0])
    room = plain(one(tensors))
    operation = _calls.broadcast(group, room, nbytes(room), group.ranks[root])
    return HoroWork(group, [landing(operation, room, tensors[0])], tensors)


def start_allgather(group, output, source):
    room = room_for(output)
    source = plain(source)
    if nbytes(output) != nbytes(source) * group.size():
        raise ValueError(
            f"horo: all_gather of {nbytes(source)} bytes on {group.size()} ranks into {nbytes(output)} bytes: the "
            f"output must be {group.size()} times the input"
        )
    return landing(_calls.allgather(group, source, nbytes(source), room), room, output)


def allgather_single(group, output, source):
    check(output)
    check(source)
    return HoroWork(group, [start_allgather(group, output, source)], [output])


def allgather_single_coalesced(group, outputs, sources):
    for tensor in (*outputs, *sources):
        check(tensor)
    operations = [start_allgather(group, *pair) for pair in zip(outputs, sources)]
    return HoroWork(group, operations, outputs)


def start_allgather_list(group, outputs, source):
    """Into a tensor for each rank."""
    if len(outputs) != group.size():
        raise ValueError(f"horo: all_gather on {group.size()} ranks into {len(outputs)} tensors")
    for output in outputs:
        check(output)
    source = plain(source)
    length = nbytes(source)
    if any(nbytes(output) != length for output in outputs):
        return _special.allgather_uneven(group, outputs, source)
    gathered = torch.empty((group.size(), source.numel()), dtype=source.dtype)
    operation = _calls.allgather(group, source, length, gathered)

    def scatter_rows():
        for output, row in zip(outputs, gathered):
            put(row, output)

    operation.then(scatter_rows)
    return operation


def put(row, output):
    """Copies a flat tensor of the bytes of `output`; gradients do not see it."""
    if row.dtype != output.dtype:
        row = row.view(torch.uint8).view(output.dtype)
    output.detach().copy_(row.view(output.shape))


def allgather(group, output_lists, sources):
    operation = start_allgather_list(group, output_lists[0], one(sources))
    # torch's C++ code takes the flat list of one rank's tensors as the result.
    return HoroWork(group, [operation], list(output_lists[0]))


def allgather_coalesced(group, output_lists, sources):
    """`output_lists[i]` has the tensors of all ranks for sources[i]."""
    pairs = zip(output_lists, sources)
    operations = [start_allgather_list(group, outputs, source) for outputs, source in pairs]
    return HoroWork(group, operations, [output for outputs in output_lists for output in outputs])


def start_alltoall_list(group, outputs, sources, text):
    """Sends sources[i] to rank i, and receives outputs[i] from it. Empty lists stand for nothing."""
    for tensor in (*outputs, *sources):
        check(tensor)
    splits = [nbytes(tensor) for tensor in sources] or [0] * group.size()
    expected = [nbytes(tensor) for tensor in outputs] or [0] * group.size()
    flat = [plain(source).reshape(-1).view(torch.uint8) for source in sources if source.numel()]
    packed = torch.cat(flat) if flat else torch.empty(1, dtype=torch.uint8)
    room = torch.empty(max(1, sum(expected)), dtype=torch.uint8)
    operation = _calls.alltoall(group, packed, splits, room, expected, text)

    def scatter_rows():
        offset = 0
        for output, length in zip(outputs, expected):
            piece = room[offset : offset + length].clone() if length else room[:0]
            put(piece.view(output.dtype), output)
            offset += length

    operation.then(scatter_rows)
    return operation


def _for_root(group, tensors, root):
    """The lists of an alltoall in which only the root's share is not empty."""
    empty = torch.empty(0, dtype=torch.uint8)
    return [tensors if rank == root else empty for rank in range(group.size())]


def gather(group, output_lists, sources, root):
    source, outputs = one(sources), []
    if group.rank() == root:
        outputs = list(output_lists[0])
        if len(outputs) != group.size():
            raise ValueError(f"horo: gather on {group.size()} ranks into {len(outputs)} tensors")
    operation = start_alltoall_list(group, outputs, _for_root(group, source, root), f"ga.{root}")
    return HoroWork(group, [operation], outputs)


def scatter(group, outputs, source_lists, root):
    output, sources = one(outputs), []
    if group.rank() == root:
        sources = list(source_lists[0])
        if len(sources) != group.size():
            raise ValueError(f"horo: scatter of {len(sources)} tensors on {group.size()} ranks")
    operation = start_alltoall_list(group, _for_root(group, output, root), sources, f"sc.{root}")
    return HoroWork(group, [operation], outputs)


def alltoall(group, outputs, sources):
    for what, tensors in (("output", outputs), ("input", sources)):
        if len(tensors) != group.size():
            raise ValueError(f"horo: all_to_all on {group.size()} ranks with {len(tensors)} {what} tensors")
    return HoroWork(group, [start_alltoall_list(group, outputs, sources, "l")], outputs)


def alltoall_single(group, output, source, output_splits, input_splits):
    check(output)
    check(source)
    send = _bytes_of_rows(group, source, input_splits, "input")
    expected = _bytes_of_rows(group, output, output_splits, "output")
    room, packed = room_for(output), plain(source)
    operation = _calls.alltoall(group, packed, send, room, expected, "t")
    return HoroWork(group, [landing(operation, room, output)], [output])


def _bytes_of_rows(group, tensor, splits, what):
    """The bytes of each rank's rows. Fails: ValueError."""
    size = group.size()
    rows = tensor.shape[0] if tensor.dim() else 1
    if not splits:
        if rows % size:
            raise ValueError(f"horo: all_to_all of {rows} {what} rows, which {size} ranks do not divide evenly")
        return [nbytes(tensor) // size] * size
    if len(splits) != size or sum(splits) != rows or min(splits) < 0:
        raise ValueError(f"horo: {what} splits {list(splits)} of {rows} rows on {size} ranks do not fit")
    width = nbytes(tensor) // rows if rows else 0
    return [count * width for count in splits]


def barrier(group):
    return HoroWork(group, [_calls.barrier(group)], [])


def joined(group, works, tensors):
    """Several works as one."""
    operations = [operation for work in works for operation in work.operations]
    if all(work.is_bare() for work in works):
        return HoroWork(group, operations, tensors)
    return HoroWork(group, operations, tensors, after=lambda: [work.wait() for work in works])


