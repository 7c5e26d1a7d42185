# SPDX-License-Identifier: Apache-2.0
"""Starts collectives on the arrays of any framework: copy in, declare, submit, and copy out at the
end.

Each start_...() method returns a handle. `names` is the process set's table of names; `name` is the
user's name or None.
"""

from __future__ import annotations

import itertools
from typing import Any

from horo import _handles
from horo._arguments import BY_KNOBS, SUM, whole_number, whole_numbers
from horo._device.places import memory_of, memory_word
from horo._face import rows_shape
from horo._handles import PENDING, Part, submit
from horo._names import KIND_NAMES, declare
from horo._native import ALLGATHER, ALLREDUCE, ALLTOALL, BROADCAST, REDUCESCATTER


def need_rows(array, kind):
    """Fails: ValueError (the array has no dimension 0)."""
    if not len(array.shape):
        raise ValueError(f"{KIND_NAMES[kind]} needs at least one dimension; use reshape(1)")


def declared(face, record, kind, part, group=(), root=0):
    """The record, declared with the signature of a part that is not reduced."""
    place = face.place(part)
    signature = (part.dtype, part.shape, root, *group, *memory_word(place))
    if record.signature != signature:
        dtype, memory = face.dtype(part), memory_of(place)
        declare(record, kind, dtype, part.shape, root=root, group=group, memory=memory)
        record.signature = signature
    return record


def reduced(face, record, kind, part, op, prescale, postscale, wire=BY_KNOBS, group=()):
    """The record, declared with the signature of a part that is reduced."""
    place = face.place(part)
    scales = (prescale, postscale)
    signature = (part.dtype, part.shape, op, *scales, wire, *group, *memory_word(place))
    if record.signature != signature:
        dtype, memory = face.dtype(part), memory_of(place)
        declare(record, kind, dtype, part.shape, op, 0, *scales, group, wire, memory)
        record.signature = signature
    return record


def located(part, place):
    """The submission of buffers at a place; None: in the host's memory."""
    return part if place is None else part._replace(device=place.index, stream=place.submitted)


class Operations:
    """The collectives of one framework, by its Face."""

    __slots__ = ("face",)

    def __init__(self, face):
        self.face = face

    # -- Parts -----------------------------------------------------------------------------------

    def part(self, array, op=SUM, kind=None):
        """The array as a part: the array itself, a view of it, or a copy. `kind`: the array needs
        rows for it. Fails: ValueError."""
        face = self.face
        face.check(array, op)
        if kind is not None:
            need_rows(array, kind)
        view = face.view(array)
        return face.copy_in(array) if view is None else view

    def _landing(self, target, spare, part):
        """(the part that receives the result of `target`, finish function or None). `spare`: a part
        of its shape that may be overwritten, or None. `part`: the submitted one."""
        face, place = self.face, self.face.place(part)
        view = face.view(target)
        if view is target:
            return target, None
        if view is not None:
            return view, self._finish(target, None, place)
        if spare is None:
            spare = face.copy_in(face.empty_like(target))
        return spare, self._finish(target, spare, place)

    def _finish(self, target, part, place):
        """A finish function that returns `target`; it first copies `part` there, if there is one."""
        face = self.face

        def finish(handle, item, status=None):
            self._ended(handle, status, place)
            if part is not None:
                face.copy_out(part, target)
            self._leave(handle, place, item)
            return target

        return finish

    @staticmethod
    def _ended(handle, status, place):
        """Waits for an operation whose status is not known, and raises its error."""
        if status is None:
            status = _handles.wait(handle) if place is None else place.wait(handle)
        if status:
            _handles.raise_failure(handle, status)

    @staticmethod
    def _leave(handle, place, item):
        if place is None:
            _handles.take(handle)
        else:
            place.leave(handle, *item[1])

    def _wrapping(self, part, like):
        """A finish function that returns wrap(part, like); None when the part is the result."""
        if self.face.view(like) is like and self.face.place(like) is self.face.place(part):
            return None
        face, place = self.face, self.face.place(part)

        def finish(handle, item, status=None):
            self._ended(handle, status, place)
            self._leave(handle, place, item)
            return face.wrap(part, like)

        return finish

    def _pend(self, handle, source, target, finish):
        memory = self.face.memory
        kept = (memory(source), memory(target))
        PENDING[handle] = (target, kept, finish or self.face.place(source))
        return handle

    def _submit(self, record, part, out):
        pointer, place = self.face.pointer, self.face.place(part)
        if place is None:
            return submit(record, pointer(part), pointer(out))
        where = (place.index, place.submitted)
        return _handles.submit_at(record, pointer(part), pointer(out), *where)

    # -- Allreduce and reducescatter -------------------------------------------------------------

    def start_allreduce(
        self, source, target, names, name, op, prescale, postscale, wire=BY_KNOBS
    ):
        """`target` is `source`, or new from empty_like(source). This is the hot path: for an array
        that is a part it costs one look-up of the name, one comparison of the signature and one
        call of the C library."""
        face = self.face
        address = face.address(source)
        if address is None:
            return self._start_copied(source, target, names, name, op, prescale, postscale, wire)
        record = names.records[ALLREDUCE].get(name) or names.record(ALLREDUCE, name)
        signature = (source.dtype, source.shape, op, prescale, postscale, wire)
        if record.signature != signature:
            reduced(face, record, ALLREDUCE, source, op, prescale, postscale, wire)
        memory = face.memory(source)
        if target is source:
            into, kept = address, memory
        else:
            into, kept = face.pointer(target), (memory, face.memory(target))
        handle = submit(record, address, into)
        PENDING[handle] = (target, kept, None)
        return handle

    def _start_copied(self, source, target, names, name, op, prescale, postscale, wire):
        part = self.part(source, op)
        out, finish = self._landing(target, self._spare(part, source), part)
        record = names.record(ALLREDUCE, name)
        reduced(self.face, record, ALLREDUCE, part, op, prescale, postscale, wire)
        return self._pend(self._submit(record, part, out), part, out, finish)

    def _spare(self, part, source):
        """`part` when it is a copy of `source`, which nobody else uses; else None."""
        return part if self.face.view(source) is None else None

    def _start_group(self, kind, parts, landings, names, name, op, factors, wire=BY_KNOBS):
        records, group = names.group(kind, name, len(parts))
        pointer = self.face.pointer
        for record, part in zip(records, parts):
            reduced(self.face, record, kind, part, op, factors[0], factors[1], wire, group)
        submissions = [
            located(Part(record, pointer(part), pointer(out)), self.face.place(part))
            for record, part, (out, _) in zip(records, parts, landings)
        ]
        handles = _handles.submit_all(submissions)
        for handle, part, (out, finish) in zip(handles, parts, landings):
            self._pend(handle, part, out, finish)
        return _handles.group(handles)

    def start_allreduces(self, sources, targets, names, name, op, factors, wire=BY_KNOBS):
        """One handle for a group. `targets` may be `sources`; `factors`: (prescale, postscale)."""
        self.face.check_group(sources)
        parts = [self.part(source, op) for source in sources]
        landings = [
            self._landing(target, self._spare(part, source), part)
            for target, part, source in zip(targets, parts, sources)
        ]
        return self._start_group(ALLREDUCE, parts, landings, names, name, op, factors, wire)

    def _scattered(self, part, like, names):
        """(a part for this rank's rows of a reducescatter, finish function or None)."""
        rows, over = divmod(part.shape[0], names.size())
        if names.rank() < over:
            rows += 1
        out = self.face.empty(rows_shape(rows, part), part)
        return out, self._wrapping(out, like)

    def start_reducescatter(self, source, names, name, op, prescale, postscale):
        """The result holds this rank's rows."""
        part = self.part(source, op, REDUCESCATTER)
        out, finish = self._scattered(part, source, names)
        record = names.record(REDUCESCATTER, name)
        reduced(self.face, record, REDUCESCATTER, part, op, prescale, postscale)
        return self._pend(self._submit(record, part, out), part, out, finish)

    def start_reducescatters(self, sources, names, name, op, factors):
        """One handle for a group of reducescatters."""
        self.face.check_group(sources)
        parts = [self.part(source, op, REDUCESCATTER) for source in sources]
        landings = [self._scattered(*pair, names) for pair in zip(parts, sources)]
        return self._start_group(REDUCESCATTER, parts, landings, names, name, op, factors)

    # -- Broadcast -------------------------------------------------------------------------------

    def start_broadcast(self, source, target, root_rank, names, name):
        """`target` may be `source`."""
        root = whole_number(root_rank, "root_rank")
        part = self.part(source)
        out, finish = self._landing(target, self._spare(part, source), part)
        record = declared(self.face, names.record(BROADCAST, name), BROADCAST, part, root=root)
        return self._pend(self._submit(record, part, out), part, out, finish)

    # -- Allgather and alltoall ------------------------------------------------------------------

    def _give(self, source, want_rows):
        face = self.face

        def give(result, rows):
            result = face.wrap(result, source)
            return (result, rows) if want_rows else result

        return give

    def start_allgather(self, source, names, name, want_rows=False):
        """The result is the array; with `want_rows` a pair with the rows of each rank."""
        part = self.part(source, kind=ALLGATHER)
        record = names.record(ALLGATHER, name)
        give = self._give(source, want_rows)
        moved = _Moved(self.face, names, record, ALLGATHER, part, give)
        return moved.pend(_handles.submit_part(moved.submission))

    def start_allgathers(self, sources, names, name, want_rows=False):
        """One handle for a group of allgathers."""
        self.face.check_group(sources)
        parts = [self.part(source, kind=ALLGATHER) for source in sources]
        gives = [self._give(source, want_rows) for source in sources]
        records, group = names.group(ALLGATHER, name, len(parts))
        moves = [
            _Moved(self.face, names, *one, group=group)
            for one in zip(records, itertools.repeat(ALLGATHER), parts, gives)
        ]
        handles = _handles.submit_all([moved.submission for moved in moves])
        for handle, moved in zip(handles, moves):
            moved.pend(handle)
        return _handles.group(handles)

    def start_alltoall(self, source, splits, names, name):
        """The result is the pair (array, received splits)."""
        face, numbers = self.face, whole_numbers(self.face.splits(splits))
        part = self.part(source, kind=ALLTOALL)

        def give(result, rows):
            return face.wrap(result, source), face.counts(rows, splits)

        record = names.record(ALLTOALL, name)
        moved = _Moved(face, names, record, ALLTOALL, part, give, numbers)
        return moved.pend(_handles.submit_part(moved.submission))


class _Moved:
    """One allgather or alltoall. The number of rows in its result is known only at its end. An
    array with as many rows as the last time is offered to the runtime, so that in a steady state
    nothing is copied."""

    __slots__ = ("face", "submission", "source", "memory", "room", "give", "ranks", "place")

    def __init__(self, face, names, record, kind, source, give, splits=None, group=()):
        declared(face, record, kind, source, group)
        self.face, self.source, self.give = face, source, give
        self.room: Any = None
        self.memory = face.memory(source)
        self.ranks = names.size()
        target, length = None, 0
        if record.rows:
            self.room = face.empty(rows_shape(record.rows, source), source)
            target, length = face.pointer(self.room), face.nbytes(self.room)
        self.place = face.place(source)
        part = Part(record, face.pointer(source), target, length, splits)
        self.submission = located(part, self.place)

    def pend(self, handle):
        PENDING[handle] = (None, self, _finish_moved)
        return handle


def _finish_moved(handle, item, status=None):
    moved = item[1]
    face, submission, source, place = moved.face, moved.submission, moved.source, moved.place
    address, length, rows = _handles.result_of(handle, moved.ranks, status, place)
    if length and address == submission.target and length == submission.room:
        result = moved.room
    else:
        result = face.empty(rows_shape(sum(rows), source), source)
        if length:
            face.fill(result, address, length, place)
    submission.record.rows = sum(rows)
    if place is None:
        _handles.take(handle)
    else:
        place.leave(handle, moved.memory, *([] if moved.room is None else [face.memory(moved.room)]))
    return moved.give(result, rows)
