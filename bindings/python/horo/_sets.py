# SPDX-License-Identifier: Apache-2.0
"""Process sets.

A process set holds some ranks of the job. Collectives of one set run independently of other sets.
All ranks of the job, members or not, add and remove sets in the same order.
"""

from __future__ import annotations

import ctypes
import operator
from typing import TYPE_CHECKING

from horo import _job
from horo._arguments import whole_number
from horo._failures import check
from horo._names import Names
from horo._native import fast, slow

if TYPE_CHECKING:
    from collections.abc import Iterable

WORLD = Names(0)
_added: dict[int, ProcessSet] = {}  # number -> ProcessSet, without the global set


class ProcessSet:
    """Some ranks of the job, given by their numbers: ProcessSet([0, 2]), ProcessSet(range(4)). It
    can be used once init(process_sets=...) or add_process_set() has added it."""

    mpi_comm = None  # for Horovod's users; a set is never made of a communicator

    def __init__(self, ranks_or_comm: Iterable[int]) -> None:
        try:
            self.ranks = sorted(operator.index(rank) for rank in ranks_or_comm)
        except TypeError:
            raise ValueError(
                f"process set of {ranks_or_comm!r}: give the ranks, as a list or a range"
            ) from None
        self.names: Names | None = None  # the names declared in it, while it exists

    @property
    def process_set_id(self) -> int | None:
        """Its number in the runtime; None unless it has been added."""
        return None if self.names is None else self.names.set

    def size(self) -> int | None:
        """Number of its ranks; None unless it has been added."""
        return self._number(_job.set_size)

    def rank(self) -> int | None:
        """Position of this process in the set; None unless it has been added. Fails: ValueError
        (not a member)."""
        if self.names is not None:
            of(self)
        return self._number(_job.set_rank)

    def included(self) -> bool | None:
        """Whether this process is one of its ranks; None unless it has been added."""
        here = self._number(_job.set_size) is not None
        return self.names.member if here and self.names is not None else None

    def _number(self, query):
        number = -1 if self.names is None else query(self.names.set)
        return None if number < 0 else number

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet([])
global_process_set.names = WORLD


def existing(process_set):
    """The names of a set; those of the global set for None. Fails: ValueError."""
    if process_set is None:
        return WORLD
    if not isinstance(process_set, ProcessSet):
        raise ValueError(
            f"process_set {process_set!r} is not a ProcessSet; add_process_set() gives one"
        )
    if process_set.names is None:
        raise ValueError(
            f"the process set of ranks {process_set.ranks} does not exist; add it with "
            "add_process_set() or init(process_sets=...)"
        )
    return process_set.names


def names_of(number):
    """The names of the set with this number. Fails: ValueError (it does not exist any more)."""
    if number == WORLD.set:
        return WORLD
    if number not in _added:
        raise ValueError(f"process set {number} does not exist")
    return _added[number].names


def of(process_set):
    """Like existing(), for a set of which this process is a member. Fails: ValueError."""
    _job.need()
    names = existing(process_set)
    if not names.member:
        raise ValueError(
            f"rank {_job.rank()} is not in process set {names.set} (ranks {process_set.ranks}); "
            "only its members take part in its operations"
        )
    return names


# -- Adding and removing -------------------------------------------------------------------------


def _as_set(given):
    return given if isinstance(given, ProcessSet) else ProcessSet(given)


def given_sets(process_sets):
    """The argument of init() as a list of ProcessSet. Fails: ValueError."""
    if isinstance(process_sets, str):
        if process_sets.lower() != "dynamic":
            raise ValueError(f"process_sets is {process_sets!r}; give a list of sets")
        return []  # sets can always be added
    sets = [_as_set(given) for given in process_sets or ()]
    seen = set()
    for process_set in sets:
        ranks = tuple(process_set.ranks)
        if ranks in seen:
            raise ValueError(f"process_sets has the set of ranks {process_set.ranks} twice")
        seen.add(ranks)
    return sets


def forget_sets():
    """Forgets all sets and all declared names after the runtime has shut down."""
    for process_set in _added.values():
        process_set.names = None
    _added.clear()
    WORLD.clear()


def add_process_set(process_set: ProcessSet | Iterable[int]) -> ProcessSet:
    """Adds a ProcessSet, or the set of a list of ranks, and returns it. All ranks of the job,
    members or not, add their sets in the same order; the call blocks until all have made it. Fails:
    ValueError (there is no such rank, or a set of these ranks exists), MismatchError (ranks asked
    for different sets)."""
    _job.need()
    added = _as_set(process_set)
    if added.names is not None:
        raise ValueError(f"{added!r} has been added already")
    numbers = [whole_number(rank, f"a rank of {added!r}") for rank in added.ranks]
    count, number = len(numbers), ctypes.c_uint32()
    ranks = (ctypes.c_int * count)(*numbers)
    check(slow.horo_add_process_set(ctypes.addressof(ranks), count, number))
    member = fast.horo_process_set_rank(number.value) >= 0
    added.names = Names(number.value, member)
    _added[number.value] = added
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a set. All ranks of the job call this, and it blocks until all have. Operations that
    not all members have submitted end with ShutDownError. Returns False, and does nothing, for the
    global set and for a set that does not exist."""
    if not isinstance(process_set, ProcessSet):
        raise ValueError(f"process_set {process_set!r} is not a ProcessSet")
    if process_set is global_process_set or process_set.names is None:
        return False
    number = process_set.names.set
    check(slow.horo_remove_process_set(number))
    del _added[number]
    process_set.names = None
    return True


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    """All process sets: the number and the list of ranks of each. Number 0 is the global set."""
    _job.need()
    _job.size()  # raises the right error when there is no job
    ids = (ctypes.c_uint32 * fast.horo_process_sets(None, 0))()
    found = {}
    for number in ids[: fast.horo_process_sets(ctypes.addressof(ids), len(ids))]:
        ranks = (ctypes.c_int * fast.horo_process_set_size(number))()
        check(fast.horo_process_set_ranks(number, ctypes.addressof(ranks)))
        found[number] = ranks[:]
    return found


def is_process_set_included(process_set: ProcessSet | int) -> bool:
    """Whether this process is in the set, given as a ProcessSet or a number. Fails: ValueError (the
    set does not exist)."""
    number: int | None
    if isinstance(process_set, ProcessSet):
        number = process_set.process_set_id
    else:
        number = process_set
    _job.size()
    if number is None or _job.set_size(number) < 0:
        raise ValueError(f"process_set {process_set!r} does not exist")
    return _job.set_rank(number) >= 0


