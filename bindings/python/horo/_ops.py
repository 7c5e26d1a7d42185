# SPDX-License-Identifier: Apache-2.0
"""Collectives on any framework's arrays: declare, submit, and give the result.

A Face says what differs between the frameworks. Arrays here lie in the host's memory and are
contiguous. Every start_... function returns a handle.
"""

import ctypes
import operator
from typing import Callable, NamedTuple

from horo import _core
from horo._core import PENDING, Part
from horo._native import ALLGATHER, ALLTOALL, BROADCAST, fast


class Face(NamedTuple):
    """What the frameworks' arrays differ in."""

    pointer: Callable  # array -> address of its first element
    dtype: Callable  # array -> our name of its dtype
    nbytes: Callable  # array -> bytes
    empty: Callable  # shape, like -> a new array of `like`'s dtype


def declared(face, kind, array, name, extra=(), **scale):
    """The record of a name, declared with this array's signature."""
    record = _core.record_of(kind, name)
    signature = (array.dtype, array.shape) + extra
    if record.signature != signature:
        _core.declare(record, kind, face.dtype(array), array.shape, **scale)
        record.signature = signature
    return record


def reduction(face, kind, source, target, name, op, prescale, postscale):
    """The part of an allreduce or reducescatter."""
    record = declared(
        face,
        kind,
        source,
        name,
        (op, prescale, postscale),
        op=op,
        prescale=prescale,
        postscale=postscale,
    )
    return Part(record, face.pointer(source), face.pointer(target))


def scattered(face, source):
    """An array for this rank's rows of a reducescatter."""
    need_rows(source, "reducescatter")
    rows, over = divmod(source.shape[0], _core.size())
    if _core.rank() < over:
        rows += 1
    return face.empty((rows,) + tuple(source.shape[1:]), source)


def need_rows(array, what):
    if not len(array.shape):
        raise ValueError(f"{what} needs at least one dimension; use reshape(1)")


def start_broadcast(face, source, target, root_rank, name, finish=None):
    record = declared(face, BROADCAST, source, name, (root_rank,), root=root_rank)
    handle = _core.submit(record, face.pointer(source), face.pointer(target))
    PENDING[handle] = (target, source, finish)
    return handle


class Moved:
    """A started allgather or alltoall. Only its end tells how many rows there are; an array of as
    many as the last time is offered, so that in a steady state nothing is copied."""

    __slots__ = ("face", "part", "source", "room", "give")

    def __init__(self, face, kind, source, name, give, splits=None):
        need_rows(source, _core.KIND_NAMES[kind])
        record = declared(face, kind, source, name)
        self.face, self.source, self.give, self.room = face, source, give, None
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
    try:
        address, length, rows = _core.result_of(handle, status)
    finally:
        PENDING.pop(handle, None)
    if length and address == part.target and length == part.room:
        result = moved.room
    else:
        result = face.empty((sum(rows),) + tuple(source.shape[1:]), source)
        if length:
            ctypes.memmove(face.pointer(result), address, length)
    fast.horo_release(handle)
    part.record.rows = sum(rows)
    return moved.give(result, rows)


def start_moved(moved):
    handle = _core.submit_part(moved.part)
    moved.pend(handle)
    return handle


def start_allgather(face, source, name, give):
    """`give(result, rows of each rank)` makes the operation's result."""
    return start_moved(Moved(face, ALLGATHER, source, name, give))


def start_alltoall(face, source, splits, name, give):
    """`splits`: whole numbers, or None; `give(result, rows from each rank)`."""
    return start_moved(Moved(face, ALLTOALL, source, name, give, splits))


def start_reductions(face, kind, sources, targets, names, op, factors, finishes=None):
    """One handle for several allreduces or reducescatters, submitted together."""
    parts = [
        reduction(face, kind, source, target, name, op, *factors)
        for source, target, name in zip(sources, targets, names)
    ]
    handles = _core.submit_group(parts)
    for handle, source, target, finish in zip(
        handles, sources, targets, finishes or [None] * len(handles)
    ):
        PENDING[handle] = (target, source, finish)
    return _core.group(handles)


def start_allgathers(face, sources, names, gives):
    """One handle for several allgathers, submitted together."""
    moves = [
        Moved(face, ALLGATHER, source, name, give)
        for source, name, give in zip(sources, names, gives)
    ]
    handles = _core.submit_group([moved.part for moved in moves])
    for handle, moved in zip(handles, moves):
        moved.pend(handle)
    return _core.group(handles)


def member_names(name, arrays, what):
    """Names of a group's members. Fails: ValueError (no members)."""
    if not arrays:
        raise ValueError(f"a grouped {what} needs at least one member")
    return [None if name is None else f"{name}.{index}" for index in range(len(arrays))]


def whole_numbers(splits):
    """`splits` (a list, an array) as a list of int; None for none. Fails: ValueError."""
    if splits is None:
        return None
    try:
        return [operator.index(number) for number in splits] or None
    except TypeError:
        raise ValueError("splits must be whole numbers in one dimension, one per rank") from None
