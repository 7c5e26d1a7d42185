# SPDX-License-Identifier: Apache-2.0
"""What a process group has besides its methods."""

from __future__ import annotations

import collections
import threading

from horo import errors
from horo.torch.distributed import _point_to_point, _versions
from horo.torch.distributed._group_names import GroupNames


# So many operations may be in flight before a further one looks whether the first is done: to look makes
# progress, for which a thread within backward has no time.
_UNLOOKED = 64


class State:
    """The ranks of a group, its names, what is in flight, and why it ended. Thread: any."""

    def __init__(self, domain, name, ranks, rank, timeout_s, owns=False):
        """`ranks`: of the job, ascending; `rank`: this one's position in them. `owns`: the job ends with
        this group."""
        self.domain = domain
        self.ranks = list(ranks)
        self.timeout_s = timeout_s
        self.names = GroupNames(name)
        domain.groups[name] = self
        self.pairs = _point_to_point.Pairs(self)
        self._rank = rank
        self._owns = owns
        self._set = None
        self._set_lock = threading.Lock()
        self._live: collections.deque = collections.deque()  # operations that may be in flight
        self._live_lock = threading.Lock()
        self._unwaited = {}  # works that C++ code of old versions may hold without their Python part
        self._broken = None

    def rank(self):
        return self._rank

    def size(self):
        return len(self.ranks)

    @property
    def set_number(self):
        """The process set of the group. The first call blocks until it exists."""
        if self._set is None:
            with self._set_lock:
                if self._set is None:
                    self._set = self.domain.set_of(self.ranks, self.timeout_s)
        return self._set

    def close(self):
        """The group is not used any more."""
        if self._owns:
            self.domain.close()
            return
        self.pairs.release()
        with self._set_lock:
            if self._set is not None:
                self.domain.release_set(self.ranks)
                self._set = None

    # -- Operations in flight --------------------------------------------------------------------

    def note(self, operation):
        """Keeps an operation alive until it is done, whoever forgets it."""
        with self._live_lock:
            while self._live and (self._live[0].done or len(self._live) > _UNLOOKED):
                if not self._live[0].poll():
                    break
                self._live.popleft()
            self._live.append(operation)

    def keep(self, work):
        """C++ code of some versions of torch keeps only the C++ part of a Work. Without its Python part,
        waiting for it would never end."""
        if _versions.LOSES_WORKS:
            while len(self._unwaited) >= 1024:
                self._unwaited.pop(next(iter(self._unwaited)), None)
            self._unwaited[id(work)] = work
        return work

    def forget(self, work):
        if self._unwaited:
            self._unwaited.pop(id(work), None)

    def complete_later(self, work):
        """Completes the work's future on a thread."""
        self.domain.completer.add((id(self), work.lane), work)

    def complete_after_backward(self, work):
        """Completes the work's future at the end of the backward that runs in this thread. False: it is better
        completed on a thread."""
        return self.domain.latecomers.add((id(self), work.lane), work)

    # -- Ends ------------------------------------------------------------------------------------

    def abort(self, error):
        """All calls that wait or begin from now on end with this error."""
        if self._broken is None:
            self._broken = error

    def require_alive(self, _operation=None):
        """Fails: with the reason why the group was aborted."""
        if self._broken is not None:
            raise self._broken
        if self.domain.closing:
            raise errors.ShutDownError("horo: the process group was destroyed")

    def missing(self, operation):
        """Ranks of the group that have not begun an operation."""
        return [
            self.ranks.index(rank)
            for rank in self.domain.who_is_missing(self.names.group, operation.key, self.ranks)
        ]

    def time_out(self, operation, seconds):
        """The error of an operation that did not end in so many seconds; it breaks the group."""
        try:
            missing = self.missing(operation)
        except errors.HoroError:
            missing = None
        kind = _describe(operation.entry.text)
        if missing:
            words = ", ".join(map(str, missing))
            many = len(missing) > 1
            reason = f"rank{'s' if many else ''} {words} of the group did not call it, or "
            reason += "do not respond" if many else "does not respond"
        elif missing is None:
            reason = "rank 0 of the job does not respond"
        else:
            reason = "all ranks have called it, but it did not end"
        error = errors.TimeOutError(
            f"horo: timeout after {seconds:g} s: {kind} number {operation.number} of process group "
            f"'{self.names.group}' did not end: {reason}"
        )
        error.ranks = tuple(missing or ())
        self.abort(error)
        return error


_KINDS = {
    "r": "all_reduce",
    "s": "reduce_scatter",
    "b": "broadcast",
    "g": "all_gather",
    "v": "all_gather",
    "a": "all_to_all, gather or scatter",
    "w": "barrier",
    "m": "send or recv",
}


def _describe(text):
    return f"{_KINDS.get(text.partition('.')[0], 'operation')} ({text})"
