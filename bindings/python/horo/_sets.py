# SPDX-License-Identifier: Apache-2.0
"""Process sets, and what begins and ends with them: init, shutdown, barrier and join.

A process set is some ranks of the job, on which collectives run by themselves. All ranks of the job
add and remove sets, members or not, in one order.
"""

from __future__ import annotations

import atexit
import ctypes
import operator
import os
import sys
import time
from typing import TYPE_CHECKING

from horo import _core, errors
from horo._names import Names, declare
from horo._native import BARRIER, JOIN, fast, slow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

WORLD = Names(0)
_added: dict[int, ProcessSet] = {}  # number -> ProcessSet, without the world


class ProcessSet:
    """Some ranks of the job, given by their numbers: ProcessSet([0, 2]), ProcessSet(range(4)). It
    can be used once init(process_sets=...) or add_process_set() has added it."""

    mpi_comm = None  # sets are made of ranks, never of a communicator

    def __init__(self, ranks_or_comm: Iterable[int]) -> None:
        try:
            self.ranks = sorted(operator.index(rank) for rank in ranks_or_comm)
        except TypeError:
            raise ValueError(
                f"process set of {ranks_or_comm!r}: give the ranks, as a list or a range"
            ) from None
        self.names: Names | None = None  # what is declared in it, while it exists

    @property
    def process_set_id(self) -> int | None:
        """Its number in the runtime; None unless it has been added."""
        return None if self.names is None else self.names.set

    def size(self) -> int | None:
        """Number of its ranks; None unless it has been added."""
        return self._number(fast.horo_process_set_size)

    def rank(self) -> int | None:
        """This process's position in it; None unless it has been added. Fails: ValueError (not a
        member)."""
        if self.names is not None:
            of(self)
        return self._number(fast.horo_process_set_rank)

    def included(self) -> bool | None:
        """Whether this process is one of its ranks; None unless it has been added."""
        here = self._number(fast.horo_process_set_size) is not None
        return self.names.member if here and self.names is not None else None

    def _number(self, query):
        number = -1 if self.names is None else query(self.names.set)
        return None if number < 0 else number

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet([])
global_process_set.names = WORLD


def existing(process_set):
    """The names of a set; None: of the world. Fails: ValueError."""
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


def of(process_set):
    """As existing, of a set that this process is in. Fails: ValueError."""
    names = existing(process_set)
    if not names.member:
        raise ValueError(
            f"rank {_core.rank()} is not in process set {names.set} (ranks {process_set.ranks}); "
            "only its members take part in its operations"
        )
    return names


# -- Life ----------------------------------------------------------------------------------------


def init(
    comm: Any = None, process_sets: Iterable[ProcessSet | Iterable[int]] | str | None = None
) -> list[ProcessSet]:
    """Joins the job that `horo run` describes, or a job of one rank, and adds `process_sets`: a
    list of ProcessSet or of lists of ranks, the same on all ranks. Returns them as a list of
    ProcessSet. A second call does nothing. `comm`, all ranks or mpi4py's communicator of them, is
    only compared with the job: a part of the job is a process set."""
    sets = _given_sets(process_sets)
    if _core.is_initialized():
        return sets
    _core.check(slow.horo_init())
    _core.joined_by = os.getpid()
    atexit.unregister(_leave)
    atexit.register(_leave)
    global_process_set.ranks = list(range(_core.size()))
    try:
        _compare(comm)
    except Exception:
        shutdown()
        raise
    return [add_process_set(process_set) for process_set in sets]


def _compare(comm):
    """Fails: ValueError (`comm` is something else than this job)."""
    ours = f"this job has {_core.size()} ranks and this is rank {_core.rank()}"
    if comm is None:
        return
    if hasattr(comm, "Get_rank"):
        if (comm.Get_size(), comm.Get_rank()) != (_core.size(), _core.rank()):
            raise ValueError(
                f"comm has {comm.Get_size()} ranks and this is {comm.Get_rank()}, but {ours}; "
                "use process_sets= for a part of the job"
            )
        return
    try:
        ranks = [operator.index(rank) for rank in comm]
    except TypeError:
        raise ValueError(f"comm is {comm!r}; give ranks or a communicator of mpi4py") from None
    if ranks and ranks != global_process_set.ranks:  # none: all, as in Horovod
        raise ValueError(
            f"comm is ranks {ranks}, but {ours}; use process_sets= for a part of the job"
        )


def _given_sets(process_sets):
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


def shutdown() -> None:
    """Leaves the job; operations that not all ranks have submitted end with ShutDownError. Process
    sets are gone."""
    status = slow.horo_shutdown()
    _core.forget()
    for process_set in _added.values():
        process_set.names = None
    _added.clear()
    WORLD.clear()
    _core.check(status)


# A rank whose exception ends it leaves before its process is gone. Who ends because of that lets it
# be gone first for so long: the launcher's report names the one that was first.
_BEHIND_S = 1.0


def _leave():
    """What the interpreter does at its end."""
    if _ended_by_a_peer():
        time.sleep(_BEHIND_S)
    shutdown()


def _ended_by_a_peer():
    """Whether what ends this program is that a peer has left the job."""
    error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    while error is not None and not isinstance(error, errors.ShutDownError):
        error = error.__cause__ or error.__context__
    return error is not None


# -- Adding and removing -------------------------------------------------------------------------


def _as_set(given):
    return given if isinstance(given, ProcessSet) else ProcessSet(given)


def add_process_set(process_set: ProcessSet | Iterable[int]) -> ProcessSet:
    """Adds a ProcessSet, or the set of a list of ranks, and returns it. All ranks of the job call
    it, members or not, and in one order; blocks until all have. Fails: ValueError (no such rank,
    or a set of these ranks exists), MismatchError (ranks asked for different sets)."""
    added = _as_set(process_set)
    if added.names is not None:
        raise ValueError(f"{added!r} has been added already")
    numbers = [_core.whole_number(rank, f"a rank of {added!r}") for rank in added.ranks]
    count, number = len(numbers), ctypes.c_uint32()
    ranks = (ctypes.c_int * count)(*numbers)
    _core.check(slow.horo_add_process_set(ctypes.addressof(ranks), count, number))
    member = fast.horo_process_set_rank(number.value) >= 0
    added.names = Names(number.value, member)
    _added[number.value] = added
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a set; all ranks of the job call it, blocks until all have. What its members have not
    all submitted ends with ShutDownError. False, and nothing happens: it is the global set, or does
    not exist."""
    if not isinstance(process_set, ProcessSet):
        raise ValueError(f"process_set {process_set!r} is not a ProcessSet")
    if process_set is global_process_set or process_set.names is None:
        return False
    number = process_set.names.set
    _core.check(slow.horo_remove_process_set(number))
    del _added[number]
    process_set.names = None
    return True


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    """All process sets: their numbers, and a list of ranks each. Number 0 is the global set."""
    _core.size()  # or the right error
    ids = (ctypes.c_uint32 * fast.horo_process_sets(None, 0))()
    found = {}
    for number in ids[: fast.horo_process_sets(ctypes.addressof(ids), len(ids))]:
        ranks = (ctypes.c_int * fast.horo_process_set_size(number))()
        _core.check(fast.horo_process_set_ranks(number, ctypes.addressof(ranks)))
        found[number] = ranks[:]
    return found


def is_process_set_included(process_set: ProcessSet | int) -> bool:
    """Whether this process is in the set, a ProcessSet or a number. Fails: ValueError (none)."""
    number: int | None
    if isinstance(process_set, ProcessSet):
        number = process_set.process_set_id
    else:
        number = process_set
    _core.size()
    if number is None or fast.horo_process_set_size(number) < 0:
        raise ValueError(f"process_set {process_set!r} does not exist")
    return fast.horo_process_set_rank(number) >= 0


# -- Barrier and join ----------------------------------------------------------------------------


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Blocks until all ranks of the set have called it. Threads may do so at the same time."""
    names = of(process_set)
    record = names.unnamed[BARRIER]()
    while True:
        try:
            _declared_plain(record, BARRIER)
            handle = _core.submit(record, None, None)
            break
        except errors.DuplicateNameError:  # so many threads that it is this name's turn again
            time.sleep(0.001)
    status = _core.wait(handle)
    error = _core.failure(status) if status else None
    _core.take(handle)
    if error is not None:
        raise error


def join(process_set: ProcessSet = global_process_set) -> int:
    """Says that this rank has no more data and blocks until all ranks of the set have said so;
    until then it takes part in their allreduces without changing a sum. Returns the rank that
    joined last, alike on all ranks. When interrupted, call it again."""
    names = of(process_set)
    record = names.join
    if not record.handle:
        _declared_plain(record, JOIN)
        _core.submit(record, None, None)
    status = _core.wait(record.handle)
    handle, record.handle = record.handle, 0
    address, _, _ = _core.result_of(handle, 0, status)
    last = ctypes.c_int32.from_address(address).value
    _core.take(handle)
    names.restart()
    return last


def _declared_plain(record, kind):
    if record.signature is None:
        declare(record, kind, "uint8", ())
        record.signature = ()
