# SPDX-License-Identifier: Apache-2.0
"""Completes futures. C++ code of torch, such as DistributedDataParallel, waits for futures without
asking us, so a thread has to wait for the operation and then set the future's result.

Operations of one lane complete in their order; lanes do not wait for each other. A group's collectives
are one lane, because every rank starts them in the same order. Each message between two ranks is a lane
of its own. Setting a result runs the callbacks of the future, which may start further operations of the
lane and wait for them, so the lane goes on meanwhile. There are as many threads as are busy at once; they
are kept.
"""

from __future__ import annotations

import collections
import threading


class Completer:
    """Thread: any."""

    def __init__(self):
        self._changed = threading.Condition()
        self._lanes = {}  # lane -> deque of jobs; a lane that is here has a thread, or waits for one
        self._ready: collections.deque = collections.deque()  # lanes without a thread
        self._idle = 0
        self._threads = []
        self._closed = False

    def add(self, lane, job):
        """Calls job.settle(), which waits for an operation, after those of the lane's earlier jobs, and
        then job.deliver(). Neither may raise."""
        with self._changed:
            jobs = self._lanes.get(lane)
            if jobs is not None:
                jobs.append(job)
                return
            self._lanes[lane] = collections.deque([job])
            self._make_ready(lane)

    def _make_ready(self, lane):
        """Gives a lane to a thread. The caller holds the lock."""
        self._ready.append(lane)
        if self._idle >= len(self._ready):
            self._changed.notify()
            return
        name = f"horo-futures-{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self):
        while True:
            with self._changed:
                self._idle += 1
                while not self._ready and not self._closed:
                    self._changed.wait()
                self._idle -= 1
                if not self._ready:
                    return
                lane = self._ready.popleft()
            self._serve(lane)

    def _serve(self, lane):
        with self._changed:
            job = self._lanes[lane].popleft()
        job.settle()
        with self._changed:
            if self._lanes[lane]:
                self._make_ready(lane)
            else:
                del self._lanes[lane]
        job.deliver()

    def close(self):
        """Does what was added, and ends the threads. The operations must end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
