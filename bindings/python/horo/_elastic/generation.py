# SPDX-License-Identifier: Apache-2.0
"""The generation of an elastic job as this process sees it, and objects that outlive it.

A generation fixes the ranks of the job. When ranks come or go, the others shut down and initialise
again, which gives them their place in the next generation.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING

from horo import _job
from horo._failures import check
from horo._native import fast

if TYPE_CHECKING:
    from typing import Any

REMOVED, ADDED = 1, 2  # flags of a pending change

# Variables that tell a process its place -> the query that answers it. `horo run` sets the first
# name of each row always, and the others for programs of other frameworks.
_PLACES = (
    (("HORO_RANK", "HOROVOD_RANK", "RANK", "JAX_PROCESS_ID"), _job.rank),
    (("HORO_SIZE", "HOROVOD_SIZE", "WORLD_SIZE", "JAX_NUM_PROCESSES"), _job.size),
    (("HORO_LOCAL_RANK", "HOROVOD_LOCAL_RANK", "LOCAL_RANK"), _job.local_rank),
    (("HORO_LOCAL_SIZE", "HOROVOD_LOCAL_SIZE", "LOCAL_WORLD_SIZE"), _job.local_size),
    (("HORO_CROSS_RANK", "HOROVOD_CROSS_RANK"), _job.cross_rank),
    (("HORO_CROSS_SIZE", "HOROVOD_CROSS_SIZE"), _job.cross_size),
)
GENERATION = "HORO_GENERATION"

_followers: weakref.WeakSet[Any] = weakref.WeakSet()


def is_elastic() -> bool:
    """Whether ranks may come and go in this process's job."""
    return bool(fast.horo_is_elastic())


def generation() -> int:
    """The number of the job's generation: 1, 2, ... 0: this process prepares itself to join it.
    Fails: NotInitializedError."""
    number = fast.horo_generation()
    if number < 0 and _job.is_planned():
        return 0
    if number < 0:
        raise _job.absent()
    return int(number)


def survivors() -> int:
    """The number of ranks that were members of the generation before, too. They have the lowest
    ranks. 0 in the first generation. Fails: NotInitializedError."""
    number = fast.horo_survivors()
    if number < 0 and _job.is_planned():
        return 0
    if number < 0:
        raise _job.absent()
    return int(number)


def pending_change() -> tuple[int, int]:
    """The newest announced change of the job's members, as (number, flags). Number 0: none is
    newer than this generation. Flags: 1 ranks are to go, 2 ranks are there. It costs no system call,
    and ranks may see a change at different times: check_host_updates() asks all."""
    sequence, flags = ctypes.c_uint64(), ctypes.c_uint32()
    if _job.is_planned():
        return 0, 0
    check(fast.horo_pending_change(ctypes.byref(sequence), ctypes.byref(flags)))
    return sequence.value, flags.value


def tell_environment() -> None:
    """Writes this process's place into its own environment, for programs that read it there."""
    for names, query in _PLACES:
        value = str(query())
        for name in names:
            if name in os.environ or name.startswith("HORO_"):
                os.environ[name] = value
    os.environ[GENERATION] = str(generation())


def planned_places() -> dict[str, int]:
    """The place that the launcher plans for this process: "rank" -> 3, ...."""
    return {query.__name__: int(os.environ.get(names[0], "0")) for names, query in _PLACES}


def follow(one: Any) -> None:
    """Calls one.generation_ended() when the runtime has shut down, as long as the object lives."""
    _followers.add(one)


def ended() -> None:
    """The runtime has shut down: no operation uses any memory any more."""
    for one in list(_followers):
        one.generation_ended()
