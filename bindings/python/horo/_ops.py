# SPDX-License-Identifier: Apache-2.0
"""Collectives on any framework's arrays: declare, submit, and give the result.

A Face says what differs between the frameworks. Arrays here lie in the host's memory and are
contiguous. Every start_... function returns a handle.
"""

import ctypes
from typing import Callable, NamedTuple

from horo import _core
from horo._core import PENDING, Part
from horo._names import KIND_NAMES, declare
from horo._native import ALLGATHER, ALLTOALL, BROADCAST


class Face(NamedTuple):
    """What the frameworks' arrays differ in."""

    pointer: Callable  # array -> address of its first element
    dtype: Callable  # array -> our name of its dtype
    nbytes: Callable  # array -> bytes
    empty: Callable  # shape, like -> a new array of `like`'s dtype
    memory: Callable  # array -> what keeps its memory, also when it gets another


def declared(face, record, kind, array, group=(), root=0):
    """The record, declared with this array's signature."""
    signature = (array.dtype, array.shape, root) + group
    if record.signature != signature:
        declare(record, kind, face.dtype(array), array.shape, root=root, group=group)
        record.signature = signature
    return record


def reduction(face, record, kind, source, target, op, prescale, postscale, group=()):
    """The part of an allreduce or reducescatter."""
    signature = (source.dtype, source.shape, op, prescale, postscale) + group
    if record.signature != signature:
        declare(record, kind, face.dtype(source), source.shape, op, 0, prescale, postscale, group)
        record.signature = signature
    return Part(record, face.pointer(source), face.pointer(target))


def scattered(face, names, source):
    """An array for this rank's rows of a reducescatter."""
    need_rows(source, "reducescatter")
    rows, over = divmod(source.shape[0], names.size())
    if names.rank() < over:
        rows += 1
    return face.empty((rows,) + tuple(source.shape[1:]), source)


def need_rows(array, what):
    if not len(array.shape):
        raise ValueError(f"{what} needs at least one dimension; use reshape(1)")


def start_broadcast(face, record, source, target, root_rank, finish=None):
    root_rank = _core.whole_number(root_rank, "root_rank")
    declared(face, record, BROADCAST, source, root=root_rank)
    handle = _core.submit(record, face.pointer(source), face.pointer(target))
    PENDING[handle] = (target, (face.memory(source), face.memory(target)), finish)
    return handle


class Moved:
    """A started allgather or alltoall. Only its end tells how many rows there are; an array of as
    many as the last time is offered, so that in a steady state nothing is copied."""

    __slots__ = ("face", "part", "source", "memory", "room", "give", "ranks")

    def __init__(self, face, names, record, kind, source, give, splits=None, group=()):
        declared(face, record, kind, source, group)
        self.face, self.source, self.give, self.room = face, source, give, None
        self.memory = face.memory(source)
        self.ranks = names.size()
        target, length = None, 0
        if record.rows:
            self.room = face.empty((record.rows,) + tuple(source.shape[1:]), source)
            target, length = face.pointer(self.room), face.nbytes(self.room)
        self.part = Part(record, face.pointer(source), target, length, splits)

    def pend(self, handle):
        PENDING[handle] = (None, self, _finish_moved)


def _finish_moved(handle, item, status=None):
    moved = item[1]
    face, part, source = moved.face, moved.part, moved.source
    address, length, rows = _core.result_of(handle, moved.ranks, status)
    if length and address == part.target and length == part.room:
        result = moved.room
    else:
        result = face.empty((sum(rows),) + tuple(source.shape[1:]), source)
        if length:
            ctypes.memmove(face.pointer(result), address, length)
    _core.take(handle)
    part.record.rows = sum(rows)
    return moved.give(result, rows)


def start_moved(face, names, kind, name, source, give, splits=None):
    """Starts an allgather or alltoall. `splits`: whole numbers, or None; `give(result, rows from
    each rank)` makes the operation's result."""
    need_rows(source, KIND_NAMES[kind])
    moved = Moved(face, names, names.record(kind, name), kind, source, give, splits)
    handle = _core.submit_part(moved.part)
    moved.pend(handle)
    return handle


def start_allgather(face, names, name, source, give):
    return start_moved(face, names, ALLGATHER, name, source, give)


def start_alltoall(face, names, name, source, splits, give):
    return start_moved(face, names, ALLTOALL, name, source, give, splits)


def start_reductions(face, names, kind, name, sources, targets, op, factors, finishes=None):
    """One handle for a group of allreduces or reducescatters."""
    records, group = names.group(kind, name, len(sources))
    parts = [
        reduction(face, record, kind, source, target, op, factors[0], factors[1], group)
        for record, source, target in zip(records, sources, targets)
    ]
    handles = _core.submit_all(parts)
    for handle, source, target, finish in zip(
        handles, sources, targets, finishes or [None] * len(handles)
    ):
        PENDING[handle] = (target, (face.memory(source), face.memory(target)), finish)
    return _core.group(handles)


def start_allgathers(face, names, name, sources, gives):
    """One handle for a group of allgathers."""
    for source in sources:
        need_rows(source, "allgather")
    records, group = names.group(ALLGATHER, name, len(sources))
    moves = [
        Moved(face, names, record, ALLGATHER, source, give, group=group)
        for record, source, give in zip(records, sources, gives)
    ]
    handles = _core.submit_all([moved.part for moved in moves])
    for handle, moved in zip(handles, moves):
        moved.pend(handle)
    return _core.group(handles)


def whole_numbers(splits):
    """`splits` (a list, an array) as a list of int; None for none. Fails: ValueError."""
    if splits is None:
        return None
    words = "splits must be whole numbers in one dimension, one per rank"
    one = f"{words}; one"
    try:
        numbers = list(splits)
    except TypeError:
        raise ValueError(words) from None
    return [_core.whole_number(number, one, 64) for number in numbers] or None
