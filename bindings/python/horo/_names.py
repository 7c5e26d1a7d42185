# SPDX-License-Identifier: Apache-2.0
"""The names that this process has declared in one process set.

No table grows with the steps: unnamed calls use a fixed number of names in turn. All ranks of the
set count their unnamed calls in the same way, so they use the same names.
"""

import ctypes
import itertools
from typing import TYPE_CHECKING

from horo import _extension, _handles, _job, _native
from horo._arguments import BY_KNOBS, SUM

KIND_NAMES = (
    "allreduce",
    "allgather",
    "broadcast",
    "barrier",
    "reducescatter",
    "alltoall",
    "join",
)

UNNAMED = 1024  # unnamed calls of one kind that may be in flight at once
NAMED = 16384  # user's names of one kind that are remembered
UNNAMED_GROUPED = 256  # members of all unnamed groups of one kind and size; at least two groups


class _Fields:
    """The fields of a Record."""

    __slots__ = (
        "name",
        "set",
        "tensor",
        "slot",
        "address",
        "description",
        "signature",
        "handle",
        "rows",
    )


if TYPE_CHECKING or _extension.module is None:
    _RecordBase = _Fields
else:  # the module reads the fields of its own type without a look-up
    _RecordBase = _extension.module.Record


class Record(_RecordBase):
    """One declared name: its number in the runtime and the signature it was declared with."""

    __slots__ = ()

    def __init__(self, name, number):
        if "\0" in name:  # C would cut the name there
            raise ValueError(f"name {name!r} contains a null character")
        self.name = name.encode()
        self.set = number
        self.tensor = 0
        self.slot = ctypes.c_uint64()  # receives the horo_op; one per name, since threads may submit
        self.address = ctypes.addressof(self.slot)
        self.description = None
        self.signature = None
        self.handle = 0
        self.rows = None  # rows of the last result, when its size depends on the other ranks


def declare(
    record, kind, dtype, shape, op=SUM, root=0, prescale=1.0, postscale=1.0, group=(), wire=BY_KNOBS,
    memory=_native.HOST,
):
    """Tells the runtime the signature of a name. `dtype` is a name such as "float32". `group` is the
    name of the group that the tensor belongs to and the number of its members. `wire` is a pair of
    resolve_wire(). `memory` says where the tensor is."""
    code = _native.DTYPES.get(dtype)
    if code is None:
        known = ", ".join(_native.DTYPES)
        raise ValueError(f"{record.name.decode()}: dtype {dtype} is not one of {known}")
    for what, factor in (("prescale", prescale), ("postscale", postscale)):
        if factor != factor:
            raise ValueError(f"{record.name.decode()}: the {what} factor is not a number (nan)")
    group_name, group_size = group or (None, 0)
    wire_dtype, wire_feedback = wire
    description = _handles.Description(
        kind, op, code, tuple(shape), root, prescale, postscale, group_name, group_size, wire_dtype,
        wire_feedback, memory
    )
    record.signature = None
    record.description = description
    _handles.declare_again(record)


class _Turns:
    """Records for unnamed calls, used in turn. `make(index)` returns a tuple of records."""

    def __init__(self, count, make):
        self._entries = [None] * count
        self._make = make
        self.restart()

    def restart(self):
        self._calls = itertools.count()  # next() is atomic, so threads may call take()

    def take(self):
        index = next(self._calls) % len(self._entries)
        entry = self._entries[index]
        if entry is None:
            entry = self._entries[index] = self._make(index)
        else:
            for record in entry:
                if record.handle in _handles.PENDING:
                    _handles.settle(record.handle)
        return entry


class _Numbers:
    """Counts from `first`. next() gives a number; `following` is the one that it gives then."""

    __slots__ = ("following",)

    def __init__(self, first):
        self.following = first

    def __next__(self):
        self.following += 1
        return self.following - 1


class Names:
    """The records of one process set. `records[kind]` holds those that the user has named.
    `unnamed[kind]()` returns the next unnamed one."""

    __slots__ = (
        "set",
        "member",
        "records",
        "unnamed",
        "join",
        "optimizers",
        "unnamed_optimizers",
        "_kept_optimizers",
        "_most",
        "_turns",
        "_groups",
    )

    def __init__(self, number, member=True):
        self.set = number
        self.member = member
        self._kept_optimizers = (0, 0)
        self.clear()

    def clear(self):
        """Forgets all declared names."""
        self.records: tuple[dict[str, Record], ...] = tuple({} for _ in KIND_NAMES)
        self._turns = [self._turns_of(f"{kind}.noname.") for kind in KIND_NAMES]
        self.unnamed = [lambda take=turns.take: take()[0] for turns in self._turns]
        self._groups = {}  # (kind, number of members) -> _Turns
        self.join = Record("join", self.set)
        first, first_unnamed = self._kept_optimizers
        self.optimizers = _Numbers(first)  # numbers the optimizers of this set
        self.unnamed_optimizers = _Numbers(first_unnamed)  # those without named_parameters
        self._most = [NAMED] * len(KIND_NAMES)  # a further name of a kind drops old ones

    def keep_optimizers(self):
        """The optimizers that exist now keep their numbers in the job's next generations."""
        self._kept_optimizers = (
            self.optimizers.following,
            self.unnamed_optimizers.following,
        )

    def restart(self):
        """Counts unnamed calls from zero again, because ranks that had joined have not counted."""
        for turns in (*self._turns, *self._groups.values()):
            turns.restart()

    def _turns_of(self, prefix):
        return _Turns(UNNAMED, lambda index: (Record(f"{prefix}{index}", self.set),))

    def record(self, kind, name):
        """The record of a user's name, or the next unnamed one for None."""
        if name is None:
            return self.unnamed[kind]()
        record = self.records[kind].get(name)
        if record is None:
            if len(self.records[kind]) >= self._most[kind]:
                self._forget_old(kind)
            record = self.records[kind][name] = Record(f"{KIND_NAMES[kind]}.{name}", self.set)
        return record

    def _forget_old(self, kind):
        """Drops those of the older half that are not in flight; a later use declares them again.
        When most are in flight, the limit is raised, or each further name would search them."""
        records, kept = self.records[kind], 0
        for name in list(records)[: len(records) // 2]:
            if records[name].handle in _handles.PENDING:
                kept += 1
            else:
                records.pop(name, None)
        self._most[kind] = max(NAMED, 3 * kept)

    def group(self, kind, name, count):
        """The members' records of a grouped call, and (name of the group, number of members)."""
        if not count:
            raise ValueError(f"a grouped {KIND_NAMES[kind]} needs at least one member")
        if name is None:
            records = self._unnamed_group(kind, count)
        else:
            records = [self.record(kind, f"{name}.{index}") for index in range(count)]
        return records, (records[0].name, count)

    def _unnamed_group(self, kind, count):
        turns = self._groups.get((kind, count))
        if turns is None:
            prefix = f"{KIND_NAMES[kind]}.noname.{count}."

            def make(turn):
                return tuple(Record(f"{prefix}{turn}.{i}", self.set) for i in range(count))

            most = max(2, UNNAMED_GROUPED // count)
            turns = self._groups.setdefault((kind, count), _Turns(most, make))
        return turns.take()

    def size(self):
        """Number of ranks in the set. Fails: NotInitializedError."""
        return self._number(_job.set_size)

    def rank(self):
        """Position of this process in the set. Fails: NotInitializedError."""
        return self._number(_job.set_rank)

    def _number(self, query):
        number = query(self.set)
        if number < 0:
            raise _job.absent()
        return number
