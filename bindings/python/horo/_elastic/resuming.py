# SPDX-License-Identifier: Apache-2.0
"""The ranks of a job that begins agree on the newest good file of the training's state.

Each rank lists its own directory, which may be shared by all hosts or not. The rank that has the file
with the highest number reads it; if several have it, the lowest. If that file is damaged, the next
one is tried.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from horo import _job, errors
from horo._elastic import saved_file
from horo._elastic.saving import say
from horo._objects import gather_objects
from horo._sets import WORLD

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from horo._elastic.saved_file import Head, Listed


def _offer(folder):
    """(files, unusable files, problem) of this rank."""
    try:
        listed, bad = saved_file.newest(folder)
        return listed, bad, None
    except saved_file.Newer as newer:
        return [], [], str(newer)
    except OSError as error:
        return [], [(folder, f"it cannot be read: {error.strerror or error}")], None


def gather(value: Any, name: str) -> list[Any]:
    """The values of all ranks. All ranks call it."""
    return gather_objects(value, WORLD, name) if _job.is_initialized() else [value]


def rank() -> int:
    """0 in a process that has not joined a job."""
    return _job.rank() if _job.is_initialized() else 0


def size() -> int:
    """The job's, also when the training has ended without the job's last generation. It is 1 in a
    process that has not joined a job."""
    try:
        return _job.size()
    except errors.NotInitializedError:
        return 1


def find(
    folder: str, load: Callable[[Head, list[bytearray]], Any]
) -> tuple[int, Head] | None:
    """Calls `load` on one rank with a good file, and returns that rank and the file's head. None:
    there is no file. All ranks call it. Fails on all ranks: ValueError (the file is good, but does not
    fit this program)."""
    rows = gather(_offer(folder), "elastic.saved")
    problems = [problem for _, _, problem in rows if problem is not None]
    if problems:
        raise ValueError(f"the training cannot resume: {problems[0]}")
    bad = dict(one for _, found, _ in rows for one in found)
    if rank() == 0:
        for path, reason in sorted(bad.items()):
            say(f"{path} is passed over: {reason}")
    for reader, listed in _in_order(rows):
        outcome = _attempt(listed, load) if rank() == reader else None
        good, reason = gather(outcome, "elastic.resumed")[reader]
        if good:
            return reader, listed.head
        if reason is not None:
            raise ValueError(reason)
    if (bad or any(listed for listed, _, _ in rows)) and rank() == 0:
        say(f"no file in {folder} can be used: the training begins anew")
    return None


def _in_order(rows):
    """(rank, file), the newest file first, each file once."""
    seen: set[bytes] = set()
    found: list[tuple[int, Listed]] = []
    for owner, (files, _, _) in enumerate(rows):
        fresh = [one for one in files if one.checksum not in seen]
        seen.update(one.checksum for one in fresh)
        found += [(owner, one) for one in fresh]
    return sorted(found, key=lambda one: (-one[1].head.number, -one[1].head.saved_at, one[0]))


def _attempt(listed, load):
    """(True, None), or (False, why the program cannot use any file)."""
    try:
        head, parts = saved_file.read(listed.path)
    except (saved_file.Unusable, saved_file.Newer) as unusable:
        say(f"{listed.path} is passed over: {unusable}")
        return False, None
    try:
        load(head, parts)
    except Exception as error:
        return False, (
            f"{listed.path} is good, but this training cannot load it: {type(error).__name__}: "
            f"{error}; remove the file, or give save_to() another directory, to begin anew"
        )
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(head.saved_at))
    say(
        f"the training resumes after {head.describe()}, from {listed.path}, saved at {at} by "
        f"{head.ranks} rank(s)"
    )
    return True, None
