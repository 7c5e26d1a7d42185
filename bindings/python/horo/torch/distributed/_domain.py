# SPDX-License-Identifier: Apache-2.0
"""The Horo job below torch.distributed's default group, while that group exists."""

from __future__ import annotations

import atexit
import weakref

from horo import _job, _life
from horo.torch.distributed import _bootstrap, _early, _lines
from horo.torch.distributed._backward import Latecomers
from horo.torch.distributed._completer import Completer
from horo.torch.distributed._members import Members

WORLD_SET = 0

current = None  # the Domain of this process


class Domain:
    """Owns the job's membership, the thread that adds sets, and the one that completes futures. `groups`
    has the living process groups by name."""

    def __init__(self, store, rank, size, timeout_s):
        """Blocks until all ranks have called it. Fails: StartError, ValueError."""
        self._was_there = _job.is_initialized() and not _early.has_joined()
        store = _bootstrap.own_part(store, rank)
        address = _bootstrap.join(store, rank, size, timeout_s)
        self.rank, self.size = rank, size
        line, self._announcer = _lines.connect(store, rank, size, address, timeout_s)
        self.groups: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
        self.members = Members(line, self._answer)
        self.completer = Completer()
        self.latecomers = Latecomers(self.completer)
        self.closing = False
        atexit.register(self._close_at_exit)

    def _answer(self, question):
        """Whether this rank has begun the operation that another one waits for."""
        group = self.groups.get(question["group"])
        return group is not None and group.names.has_begun(question["operation"])

    def who_is_missing(self, group, operation, ranks):
        """Those of `ranks` that have not begun an operation, or do not answer."""
        question = {"group": group, "operation": operation}
        answers = self.members.ask_ranks(ranks, question, timeout_s=2.0)
        return [rank for rank in ranks if not answers.get(rank)]

    def set_of(self, ranks, timeout_s):
        """The number of the process set of these ranks, ascending; release_set() gives it back."""
        if len(ranks) == self.size:
            return WORLD_SET
        return self.members.take(ranks, timeout_s)

    def release_set(self, ranks):
        if len(ranks) < self.size:
            self.members.give(ranks)

    def _close_at_exit(self):
        _life.let_the_peer_end_first()
        self.close()

    def close(self):
        """Leaves the job, unless the program has joined it by itself. Operations that are not done end
        with a ShutDownError."""
        global current
        if current is self:
            current = None
        atexit.unregister(self._close_at_exit)
        self.closing = True
        self.latecomers.close()
        self.completer.close()
        self.members.hang_up()
        if not self._was_there:
            _life.shutdown()
            _early.forget()
        self.members.close()
        if self._announcer is not None:
            self._announcer.close()


def open_default(store, rank, size, timeout_s):
    """The domain of a new default group."""
    global current
    if current is not None:
        current.close()
    current = Domain(store, rank, size, timeout_s)
    return current
