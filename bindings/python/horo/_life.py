# SPDX-License-Identifier: Apache-2.0
"""Joins and leaves the job: init() and shutdown()."""

from __future__ import annotations

import atexit
import functools
import operator
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from horo import _failures, _handles, _job, _presence, errors
from horo._device import places
from horo._elastic import generation
from horo._failures import check
from horo._native import slow
from horo._sets import add_process_set, forget_sets, given_sets, global_process_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from horo._sets import ProcessSet

# A rank that exits because a peer left waits so long at most for the end of the peer's process, so that the
# launcher's report names the peer as the first failure. It waits the shorter time if it cannot see the process.
_AFTER_PEER_MOST_S = 10.0
_AFTER_PEER_S = 1.0

# A thread whose wait ends because the interpreter exits may run so long to handle the error.
_AFTER_WAIT_S = 2.0


def init(
    comm: Any = None, process_sets: Iterable[ProcessSet | Iterable[int]] | str | None = None
) -> list[ProcessSet]:
    """Joins the job that `horo run` describes, or a job of one rank, and adds `process_sets`. They
    are a list of ProcessSet or of lists of ranks, the same on all ranks; the call returns them as a
    list of ProcessSet. An elastic job leaves out sets with a rank that does not exist. A second call
    does nothing. `comm` is a list of all ranks, or a communicator of mpi4py with all of them. A list
    of only this rank starts a job of this process alone. Use a process set for any other part of the
    job. In an elastic job that trains already, a call without arguments gives a planned place; the
    process joins in horo.elastic.run(), or in the first call that needs the other ranks. Fails:
    RemovedError (an elastic job has no place for this process any more)."""
    sets = given_sets(process_sets)
    if _job.is_initialized():
        return sets
    _first_sets[:] = sets
    if comm is None and not sets and _trains_already():
        _prepare()
        return sets
    _join(comm)
    return _add(sets)


_first_sets: list[ProcessSet] = []  # those of the last init()


def init_again() -> list[ProcessSet]:
    """Joins the next generation of an elastic job, with the process sets of the last init(). All
    ranks, also those that have just come, add the same sets."""
    if not _job.is_initialized():
        _join(None)
    return _add(_first_sets)


# -- Joining a job that trains already -------------------------------------------------------------

# Such a process makes its model and its data after init(), perhaps for minutes. The others would
# have to wait for it if it were a member already. So init() only notes the place that the launcher
# plans for it, and it asks for its real place when it is ready to train.

_joins = threading.RLock()  # held while the process joins, since threads may need it at once


def _trains_already():
    """Whether the launcher has started this process for a job that trains, or will train, without
    it. It says so for the first init() only."""
    return os.environ.pop("HORO_JOINS", "0") == "1" and generation.is_elastic()


def _prepare():
    _job.plan(generation.planned_places(), enter)
    _job.joined_by = os.getpid()
    atexit.unregister(_leave)
    atexit.register(_leave)
    global_process_set.ranks = list(range(_job.size()))


def enter() -> bool:
    """Joins the job if this process only prepares itself to, and says whether it has. Blocks until
    the others take it in. Fails: RemovedError, StartError."""
    with _joins:
        if not _job.is_planned():
            return False
        try:
            _join(None)
        finally:
            _job.planned.clear()
        _add(_first_sets)
        return True


def _add(sets):
    """Adds the sets. In an elastic job, those with ranks that do not exist are left out."""
    elastic, size = generation.is_elastic(), _job.size()
    for process_set in sets:
        if not elastic or all(rank < size for rank in process_set.ranks):
            add_process_set(process_set)
    return sets


def _join(comm):
    """Joins the job that `comm` says."""
    ranks = None if comm is None or hasattr(comm, "Get_rank") else _as_ranks(comm)
    rank, size = _told_place()
    if os.environ.get("HORO_ELASTIC"):
        size = None  # only the next generation tells it
    alone = ranks == [rank]
    if not alone and size is not None:
        _require_all(ranks, size, rank)  # before a rank waits for others that have refused
    try:
        check(slow.horo_init_alone() if alone else slow.horo_init())
    except errors.RemovedError as error:  # Python says nothing when it ends the process
        print(f"horo: {error}", file=sys.stderr, flush=True)
        raise
    _job.joined_by = os.getpid()
    if not alone:
        _presence.show(_job.rank())
    _job.keep_place({})
    atexit.unregister(_leave)
    atexit.register(_leave)
    global_process_set.ranks = list(range(_job.size()))
    try:
        if not alone:
            _require_all(ranks, _job.size(), _job.rank())
            _compare(comm)
    except Exception:
        shutdown()
        raise
    if not alone and generation.is_elastic():
        generation.tell_environment()


# The variables by which launchers tell a process its rank and the number of ranks, as libhoro looks
# for them.
_PLACES = (
    ("HORO_RANK", "HORO_SIZE"),
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


def _told_place():
    """The rank, and the number of ranks, that a launcher has told this process. Without a launcher
    the rank is 0. None: libhoro decides, since the variables do not say it. An empty variable counts
    as unset, as in libhoro."""
    for rank, size in _PLACES:
        if os.environ.get(rank):
            return _number(os.environ[rank]), _number(os.environ.get(size, ""))
    return 0, None


def _number(text):
    return int(text) if text.isdecimal() else None


def _as_ranks(comm):
    """Fails: ValueError."""
    try:
        return [operator.index(rank) for rank in comm]
    except TypeError:
        raise ValueError(f"comm is {comm!r}; give ranks or a communicator of mpi4py") from None


def _require_all(ranks, size, rank):
    """Fails: ValueError (`ranks` are not those of a job of `size` ranks). None, and an empty list as
    in Horovod, mean all ranks."""
    if ranks and ranks != list(range(size)):
        raise ValueError(f"comm is ranks {ranks}, but {_words(size, rank)}")


def _words(size, rank):
    return (
        f"this job has {size} ranks and this is rank {rank}; "
        "use process_sets= for a part of the job"
    )


def _compare(comm):
    """Fails: ValueError (`comm` is a communicator, but not that of this job)."""
    if not hasattr(comm, "Get_rank"):
        return
    size, rank = comm.Get_size(), comm.Get_rank()
    if (size, rank) != (_job.size(), _job.rank()):
        ours = _words(_job.size(), _job.rank())
        raise ValueError(f"comm has {size} ranks and this is {rank}, but {ours}")


def shutdown() -> None:
    """Leaves the job and removes all process sets. Operations that not all ranks have submitted end
    with ShutDownError."""
    _job.planned.clear()
    status = slow.horo_shutdown()
    _handles.forget(places.streams())
    forget_sets()
    generation.ended()
    check(status)


# Functions of frameworks that wait for work that they have started and that needs the other ranks.
before_leaving: list[Callable[[], None]] = []


def _leave():
    """Leaves the job when the interpreter exits."""
    let_the_peer_end_first()
    if getattr(sys, "last_value", None) is None:  # no exception ends the program
        for wait in before_leaving:
            wait()
    waiting = _handles.waiting_threads()
    try:
        shutdown()
    finally:
        _let_end(waiting)


@functools.lru_cache(maxsize=None)  # leaving makes further calls fail, which says nothing about a peer
def let_the_peer_end_first():
    """Called when the interpreter exits, before this rank leaves the job. Waits if the program exits with an
    exception because a peer has left."""
    if not _ended_by_a_peer():
        return
    if not _presence.await_ends(_failures.ranks_that_left() or (), _AFTER_PEER_MOST_S):
        time.sleep(_AFTER_PEER_S)


def _let_end(waiting):
    """Lets the threads end that shutdown() has just woken. They may print their error, and Python
    aborts the process when it exits while a thread writes to a standard stream."""
    last = time.monotonic() + _AFTER_WAIT_S
    for thread in threading.enumerate():
        if thread.ident in waiting and not isinstance(thread, threading._DummyThread):
            thread.join(max(0.0, last - time.monotonic()))


def _ended_by_a_peer():
    """Whether the program exits with an exception because a peer has left the job. Frameworks may turn our
    exception into one of their own."""
    error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    if error is not None and _failures.ranks_that_left() is not None:
        return True
    while error is not None and not isinstance(error, errors.ShutDownError):
        error = error.__cause__ or error.__context__
    return error is not None
