# SPDX-License-Identifier: Apache-2.0
"""The job as this process sees it: its position, the runtime's counters and the timeline."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

from horo import _native, errors
from horo._failures import check
from horo._native import fast, slow

if TYPE_CHECKING:
    from collections.abc import Callable

joined_by: int | None = None  # id of the process that has called init()
_last_place: dict[str, int] = {}  # after a training that has ended without its job's last generation

# The place that the launcher plans for a process which prepares itself to join an elastic job that
# trains already: "rank" -> 3, .... Empty in all other cases.
planned: dict[str, int] = {}
_enter: Callable[[], object] | None = None  # joins the job


def plan(places: dict[str, int], enter: Callable[[], object]) -> None:
    """Until `enter` is called, this process has these places."""
    global _enter
    planned.update(places)
    _enter = enter


def is_planned() -> bool:
    """Whether init() has been called, and this process prepares itself to join."""
    return bool(planned) and joined_by == os.getpid()


def need() -> None:
    """Joins the job if this process only prepares itself to. Each call that cannot do without the
    other ranks begins with this. Fails: as init()."""
    if is_planned() and _enter is not None:
        _enter()


def absent():
    """The exception for a call that needs the job, in a process that has not joined one."""
    if joined_by not in (None, os.getpid()):
        return errors.ForkedError(
            "this process was forked from the one that called horo.init(); start it afresh (spawn) "
            "to use horo"
        )
    return errors.NotInitializedError("horo is not initialised; call horo.init() first")


def is_initialized() -> bool:
    """True between init() and shutdown()."""
    return bool(fast.horo_is_initialized()) or is_planned()


def _position(name: str, text: str) -> Callable[[], int]:
    function = getattr(fast, "horo_" + name)

    def query() -> int:
        value = function()
        if value < 0 and is_planned():
            return planned[name]
        if value < 0:
            value = _last_place.get(name, -1)
        if value < 0:
            raise absent()
        return int(value)

    query.__name__ = query.__qualname__ = name
    query.__doc__ = text
    return query


rank = _position("rank", "Position of this process in the whole job.")
size = _position("size", "Number of processes in the job.")
local_rank = _position("local_rank", "Position among the processes of this host.")
local_size = _position("local_size", "Number of processes on this host.")
cross_rank = _position("cross_rank", "Position among the hosts that have this local rank.")
cross_size = _position("cross_size", "Number of hosts that have this local rank.")


_QUERIES = (rank, size, local_rank, local_size, cross_rank, cross_size)


def place() -> dict[str, int]:
    """This process's position, as the queries give it now."""
    return {query.__name__: query() for query in _QUERIES}


def keep_place(kept: dict[str, int]) -> None:
    """The queries answer this as long as the process has not joined again."""
    _last_place.clear()
    _last_place.update(kept)


def is_homogeneous() -> bool:
    """True when every host runs the same number of ranks. The answer is the same on all ranks."""
    need()
    answer = fast.horo_is_homogeneous()
    if answer < 0:
        raise absent()
    return bool(answer)


def overlaps() -> bool:
    """Whether the runtime begins what is submitted while this process computes. False where every
    core computes already: it begins with the first call that waits."""
    need()
    answer = fast.horo_overlaps()
    if answer < 0:
        raise absent()
    return bool(answer)


def set_size(number: int) -> int:
    """The number of ranks in a process set; -1: it does not exist."""
    found = fast.horo_process_set_size(number)
    return planned["size"] if found < 0 and number == 0 and is_planned() else found


def set_rank(number: int) -> int:
    """The position of this process in a process set; -1: it has none."""
    found = fast.horo_process_set_rank(number)
    return planned["rank"] if found < 0 and number == 0 and is_planned() else found


def backend(number: int) -> str | None:
    """The backend that moves the tensors of the process set: "shm" on one host, else "tcp",
    "gloo", "openmpi" or "mpich". None: this process is not a member."""
    name = fast.horo_process_set_backend(number)
    return None if name is None else name.decode()


def key(purpose: str) -> bytes | None:
    """A key that only this job's ranks know; None: the job has one host and no secret."""
    made = ctypes.create_string_buffer(32)
    status = fast.horo_job_key(purpose.encode(), made)
    if status == _native.NOT_FOUND:
        return None
    check(status)
    return made.raw


def counters() -> dict[str, int]:
    """Counts what the runtime has done since init(), as a dict: tensors, entries, bytes,
    fused_bytes, ..."""
    need()
    values = _native.Counters(size=ctypes.sizeof(_native.Counters))
    check(fast.horo_get_counters(values))
    return {name: getattr(values, name) for name, _ in values._fields_[1:]}


def start_timeline(file_path: str | os.PathLike[str], mark_cycles: bool = False) -> None:
    """Starts a trace of all operations in `file_path`. Rank 0 writes it; on other ranks the call
    does nothing."""
    path = os.fsencode(file_path)
    if b"\0" in path:
        raise ValueError(f"file_path {file_path!r} contains a null character")
    if is_planned():
        return  # it will not be rank 0
    check(slow.horo_start_timeline(path, int(bool(mark_cycles))))


def stop_timeline() -> None:
    """Ends the trace. When the call returns, the file holds all recorded operations."""
    if is_planned():
        return
    check(slow.horo_stop_timeline())
