# SPDX-License-Identifier: Apache-2.0
"""Joins and leaves the job: init() and shutdown()."""

from __future__ import annotations

import atexit
import operator
import os
import sys
import time
from typing import TYPE_CHECKING

from horo import _handles, _job, errors
from horo._failures import check
from horo._native import slow
from horo._sets import add_process_set, forget_sets, given_sets, global_process_set

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from horo._sets import ProcessSet

# A rank that exits because a peer left waits so long, so that the launcher's report names the peer
# as the first failure.
_AFTER_PEER_S = 1.0


def init(
    comm: Any = None, process_sets: Iterable[ProcessSet | Iterable[int]] | str | None = None
) -> list[ProcessSet]:
    """Joins the job that `horo run` describes, or a job of one rank, and adds `process_sets`. They
    are a list of ProcessSet or of lists of ranks, the same on all ranks; the call returns them as a
    list of ProcessSet. A second call does nothing. `comm` is a list of all ranks, or a communicator
    of mpi4py with all of them. A list of only this rank starts a job of this process alone. Use a
    process set for any other part of the job."""
    sets = given_sets(process_sets)
    if _job.is_initialized():
        return sets
    alone = _is_own_rank(comm)
    check(slow.horo_init_alone() if alone else slow.horo_init())
    _job.joined_by = os.getpid()
    atexit.unregister(_leave)
    atexit.register(_leave)
    global_process_set.ranks = list(range(_job.size()))
    try:
        _compare(None if alone else comm)
    except Exception:
        shutdown()
        raise
    return [add_process_set(process_set) for process_set in sets]


# The variables by which launchers tell a process its rank, as libhoro looks for them.
_RANK_VARIABLES = ("HORO_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def _is_own_rank(comm):
    """Whether `comm` is a list of this rank and no other."""
    if not isinstance(comm, (list, tuple)) or len(comm) != 1:
        return False
    own = next((os.environ[name] for name in _RANK_VARIABLES if name in os.environ), "0")
    return str(comm[0]) == own


def _compare(comm):
    """Fails: ValueError (`comm` is not this job)."""
    ours = f"this job has {_job.size()} ranks and this is rank {_job.rank()}"
    if comm is None:
        return
    if hasattr(comm, "Get_rank"):
        if (comm.Get_size(), comm.Get_rank()) != (_job.size(), _job.rank()):
            raise ValueError(
                f"comm has {comm.Get_size()} ranks and this is {comm.Get_rank()}, but {ours}; "
                "use process_sets= for a part of the job"
            )
        return
    try:
        ranks = [operator.index(rank) for rank in comm]
    except TypeError:
        raise ValueError(f"comm is {comm!r}; give ranks or a communicator of mpi4py") from None
    if ranks and ranks != global_process_set.ranks:  # an empty list means all ranks, as in Horovod
        raise ValueError(
            f"comm is ranks {ranks}, but {ours}; use process_sets= for a part of the job"
        )


def shutdown() -> None:
    """Leaves the job and removes all process sets. Operations that not all ranks have submitted end
    with ShutDownError."""
    status = slow.horo_shutdown()
    _handles.forget()
    forget_sets()
    check(status)


def _leave():
    """Leaves the job when the interpreter exits."""
    if _ended_by_a_peer():
        time.sleep(_AFTER_PEER_S)
    shutdown()


def _ended_by_a_peer():
    """Whether the program exits with an exception because a peer has left the job."""
    error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    while error is not None and not isinstance(error, errors.ShutDownError):
        error = error.__cause__ or error.__context__
    return error is not None
