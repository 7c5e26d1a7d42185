# SPDX-License-Identifier: Apache-2.0
"""One operation of the runtime, from its submission to its end."""

from __future__ import annotations

import threading
import time

from horo import errors
from horo._failures import failure
from horo._handles import SLICE_MS
from horo._native import IN_PROGRESS, fast, slow

_await = slow.horo_await
_poll = fast.horo_poll
_release = fast.horo_release


class Operation:
    """Owns its buffers until the runtime has completed it. Thread: any."""

    __slots__ = ("group", "entry", "number", "done", "error", "_handle", "_kept", "_finish", "_waits")

    def __init__(self, group, entry, handle, kept, finish=None):
        """`kept`: objects that own the buffers. `finish(handle)` is called once when the operation has
        succeeded, before its result is released."""
        self.group = group
        self.entry = entry
        self.number = entry.number
        self.done = False
        self.error = None
        self._handle = handle
        self._kept = kept
        self._finish = finish
        self._waits = threading.Lock()  # the runtime lets one thread wait for an operation
        entry.operation = self

    @property
    def key(self):
        """[key, number], by which other ranks know it."""
        return [self.entry.text, self.number]

    def then(self, function):
        """Calls function() once when the operation has succeeded, after what its start gave."""
        with self._waits:
            if not self.done:
                first = self._finish
                self._finish = lambda handle: (first and first(handle), function())
            elif self.error is None:
                function()

    def poll(self):
        """Whether it has ended."""
        if self.done:
            return True
        if not self._waits.acquire(blocking=False):
            return self.done  # another thread waits for it
        try:
            if not self.done and _poll(self._handle) != IN_PROGRESS:
                self._end(_await(self._handle, 0))
            return self.done
        finally:
            self._waits.release()

    def wait(self, timeout_s):
        """Fails: with the operation's error; TimeOutError, which names the missing ranks; ShutDownError
        (the group was aborted). After the last two it may still be in flight, and keeps its buffers."""
        self.settle(timeout_s)
        if self.error is not None:
            raise self.error

    def settle(self, timeout_s):
        """wait(), but the operation's own error is left to its user."""
        if not self.done:
            end = time.monotonic() + timeout_s
            if not self._waits.acquire(timeout=min(timeout_s, threading.TIMEOUT_MAX)):
                raise self.group.time_out(self, timeout_s)
            try:
                if not self.done:
                    self._end(self._await(end, timeout_s))
            finally:
                self._waits.release()

    def wait_or_name(self, timeout_s):
        """None when it has ended in time, else the ranks that have not begun it. The group goes on."""
        end = time.monotonic() + timeout_s
        with self._waits:
            status = _await(self._handle, _slice(end))
            while status == IN_PROGRESS and time.monotonic() < end:
                self.group.require_alive(self)
                status = _await(self._handle, _slice(end))
            if status != IN_PROGRESS:
                self._end(status)
        if not self.done:
            return self.group.missing(self)
        if self.error is not None:
            raise self.error
        return None

    def _await(self, end, timeout_s):
        status = _await(self._handle, _slice(end))
        while status == IN_PROGRESS:
            self.group.require_alive(self)
            if time.monotonic() >= end:
                raise self.group.time_out(self, timeout_s)
            status = _await(self._handle, _slice(end))
        return status

    def _end(self, status):
        try:
            if status:
                self.error = failure(status)
            elif self._finish is not None:
                self._finish(self._handle)
        except (errors.HoroError, RuntimeError, ValueError) as error:
            self.error = error
        _release(self._handle)
        self._kept = self._finish = None
        self.done = True


def _slice(end):
    """Milliseconds until `end`, at most a slice."""
    left = end - time.monotonic()
    return SLICE_MS if left * 1000 > SLICE_MS else max(0, int(left * 1000) + 1)
