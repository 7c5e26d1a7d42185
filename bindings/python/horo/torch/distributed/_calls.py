# SPDX-License-Identifier: Apache-2.0
"""Submits one operation of a group. A key is a text that all ranks of the group make alike; it holds
no number that may differ between ranks."""

from __future__ import annotations

from horo import _handles
from horo._native import ALLGATHER, ALLREDUCE, ALLTOALL, BARRIER, BROADCAST
from horo.torch.distributed._group_names import IN_TURN, MESSAGES, declare_entry
from horo.torch.distributed._operation import Operation


def take(group, text, set_number=None, most=IN_TURN):
    """The entry of the group's next operation with this key. Blocks when `most` are in flight until
    the first of them is done."""
    group.require_alive()
    number = group.set_number if set_number is None else set_number
    entry = group.names.next(number, text, most)
    before = entry.operation
    if before is not None and not before.done:
        before.settle(group.timeout_s)
    return entry


def submit(group, entry, part, kept, finish=None):
    """`kept`: the tensors whose memory it uses."""
    operation = Operation(group, entry, _handles.submit_part(part), kept, finish)
    group.note(operation)
    return operation


def reduce(group, source, target, kind, shape, dtype, op, scales=(1.0, 1.0)):
    """An allreduce or reducescatter of plain tensors. `dtype`, `shape`: as the runtime sees `source`."""
    text = f"{'r' if kind == ALLREDUCE else 's'}.{dtype}.{shape[0]}.{shape[-1]}.{op}"
    entry = take(group, text)
    record = declare_entry(entry, kind, dtype, shape, op, scales=scales)
    part = _handles.Part(record, source.data_ptr(), target.data_ptr())
    return submit(group, entry, part, (source, target))


def broadcast(group, tensor, length, root):
    """`root`: a rank of the job. `length`: bytes of the plain tensor."""
    entry = take(group, f"b.{length}.{root}")
    return _broadcast(group, entry, tensor, length, root)


def _broadcast(group, entry, tensor, length, root):
    record = declare_entry(entry, BROADCAST, "uint8", (length,), root=root)
    address = tensor.data_ptr()
    return submit(group, entry, _handles.Part(record, address, address), (tensor,))


def message(group, tensor, length, pair, ends, tag):
    """One message from ends[0] to ends[1], ranks of the job, whose process set is `pair`."""
    def refuse():
        return RuntimeError(
            f"horo: {MESSAGES} messages from rank {ends[0]} to rank {ends[1]} with tag {tag} are in flight; "
            "wait for some of them first"
        )

    group.require_alive()
    entry = group.names.next(pair, f"m.{ends[0]}.{ends[1]}.{tag}", MESSAGES, refuse)
    return _broadcast(group, entry, tensor, length, ends[0])


def allgather(group, source, length, target):
    """Gathers `length` bytes of each rank into a plain tensor."""
    entry = take(group, f"g.{length}")
    record = declare_entry(entry, ALLGATHER, "uint8", (1, length))
    room = length * group.size()
    part = _handles.Part(record, source.data_ptr(), target.data_ptr(), room)
    return submit(group, entry, part, (source, target), _filler(target, room, group.size()))


def allgather_rows(group, source, length, text, give):
    """Gathers what may differ in length. give(address, lengths) gets the bytes of each rank."""
    entry = take(group, f"v.{text}")
    record = declare_entry(entry, ALLGATHER, "uint8", (length,))

    def finish(handle):
        address, _, rows = _handles.result_of(handle, group.size(), 0)
        give(address, rows)

    part = _handles.Part(record, source.data_ptr() if length else 0)
    return submit(group, entry, part, (source,), finish)


def alltoall(group, source, splits, target, expected, text):
    """Sends splits[i] bytes of a plain tensor to rank i, and puts expected[i] bytes from rank i into a
    plain tensor."""
    entry = take(group, f"a.{text}")
    record = declare_entry(entry, ALLTOALL, "uint8", (sum(splits), 1))
    room = sum(expected)
    part = _handles.Part(record, source.data_ptr(), target.data_ptr(), room, list(splits))
    return submit(group, entry, part, (source, target), _filler(target, room, group.size(), expected))


def barrier(group, text="w"):
    entry = take(group, text)
    record = declare_entry(entry, BARRIER, "uint8", ())
    return submit(group, entry, _handles.Part(record, 0), ())


def _filler(target, room, ranks, expected=None):
    """A finish function for a result whose rows depend on the other ranks."""

    def finish(handle):
        address, length, rows = _handles.result_of(handle, ranks, 0)
        if expected is not None and rows != list(expected):
            raise ValueError(
                f"horo: the ranks sent {rows} bytes, but there is room for {list(expected)} from them"
            )
        if length and address != target.data_ptr():
            raise ValueError(f"horo: the ranks sent {length} bytes, and there is room for {room}")

    return finish

