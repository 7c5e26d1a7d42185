# SPDX-License-Identifier: Apache-2.0
"""Completes futures at the end of backward, in the thread that runs it.

DistributedDataParallel starts its sums within backward, from C++, and waits for their futures in a callback
that torch runs at the end of backward. Where every core computes, a thread that waits for the sums meanwhile
takes a core from backward, and the caches with it (docs/decisions/0011-no-overlap-without-a-core-for-it.md).
There a callback of our own waits for them. It runs before that of DistributedDataParallel, because it was
queued before.
"""

from __future__ import annotations

import collections
import sys
import threading
import time

import torch

from horo import _job

# A future that is not completed after so long is handed to the completer: something within backward may wait
# for it. The runtime leaves submitted tensors alone for as long.
PATIENCE_S = 0.2

# Modules whose functions ask for a future within backward and do not wait for it. The first is the caller that
# C++ code has: torch's function that runs backward.
_NEVER_WAIT = ("torch.autograd", "torch.autograd.graph", "torch.distributed.algorithms.ddp_comm_hooks.default_hooks")

_queue_callback = torch.autograd.Variable._execution_engine.queue_callback
_current_node = getattr(torch._C, "_current_autograd_node", None)


def is_asked_within():
    """Whether the caller's caller asks for a future within backward and does not wait for it there. False in
    callbacks at the end of backward, which may wait, if torch can tell."""
    if _current_node is not None and _current_node() is None:
        return False
    try:
        frame = sys._getframe(2)
    except ValueError:  # a thread of C++ code
        return False
    return frame.f_globals.get("__name__") in _NEVER_WAIT


class Latecomers:
    """Works whose futures are completed at the end of backward, or by the completer when that takes too long.
    Thread: any."""

    def __init__(self, completer):
        self._completer = completer
        self._changed = threading.Condition()
        self._works: collections.deque = collections.deque()  # (when patience ends, lane, work)
        self._sleeps = False  # the thread has nothing to wait for
        self._closed = False
        self._thread = None

    def add(self, lane, work):
        """The work's future will be completed. False if the caller is not within backward after all, or
        overlapping is better."""
        if _job.overlaps():
            return False
        try:
            _queue_callback(work.complete)
        except RuntimeError:  # backward does not run
            return False
        with self._changed:
            self._forget_completed()
            self._works.append((time.monotonic() + PATIENCE_S, lane, work))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="horo-futures-late", daemon=True)
                self._thread.start()
            elif self._sleeps:
                self._changed.notify()
        return True

    def _forget_completed(self):
        while self._works and self._works[0][2].is_claimed():
            self._works.popleft()

    def _run(self):
        with self._changed:
            while not self._closed:
                self._forget_completed()
                if not self._works:
                    self._sleeps = True
                    self._changed.wait()
                    self._sleeps = False
                    continue
                end, lane, work = self._works[0]
                left = end - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                elif work.claim():
                    self._completer.add(lane, work)

    def close(self):
        """Hands what is left to the completer, and ends the thread."""
        with self._changed:
            self._closed = True
            for _, lane, work in self._works:
                if work.claim():
                    self._completer.add(lane, work)
            self._works.clear()
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
