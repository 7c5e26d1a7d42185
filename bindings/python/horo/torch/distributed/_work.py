# SPDX-License-Identifier: Apache-2.0
"""torch's Work over our operations."""

from __future__ import annotations

import datetime
import threading
from typing import Any

import torch
from torch.distributed import Work

_NEVER = datetime.timedelta(0)  # torch's word for no time limit of its own


class HoroWork(Work):
    """One call of a group: its operations, and the tensors of its result. Thread: any."""

    def __init__(self, group, operations, tensors, source=-1, after=None):
        """`after()` is called once after all operations have succeeded."""
        super().__init__()
        self._group = group
        self.operations = operations
        self._tensors = tensors
        self._source = source
        self._after = after
        self._once: Any = threading.Lock() if after is not None else None
        self._ended: Any = None
        self._future: Any = None
        self._failure: Exception | None = None
        self.timeout_s = group.timeout_s

    def is_bare(self):
        """The operations are all that it has to do."""
        return self._after is None

    # -- Waiting ---------------------------------------------------------------------------------

    def wait(self, timeout=_NEVER):
        """Blocks until the operations are done. Fails: with their error; TimeOutError."""
        seconds = timeout.total_seconds() if timeout else 0
        self._finish(seconds if seconds > 0 else self.timeout_s)
        self._group.forget(self)
        return True

    def _finish(self, timeout_s):
        for operation in self.operations:
            if not operation.done or operation.error is not None:
                operation.wait(timeout_s)
        if self._after is not None:
            with self._once:
                if self._after is not None:
                    self._after()
                    self._after = None

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return all(operation.poll() for operation in self.operations)

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def exception(self):
        """The first error, or None."""
        return next((one.error for one in self.operations if one.done and one.error), None)

    # -- Results ---------------------------------------------------------------------------------

    def result(self):
        self.wait()
        return self._tensors

    def get_future(self):
        """A future of the list of tensors. C++ code may wait for it, so a thread completes it.

        A failure is a RuntimeError with the text of the error. Future.set_exception() would give the error
        itself, but to Python only: C++ code, such as DistributedDataParallel, takes that for a result, and
        crashes. What a callback raises is a failure for both."""
        if self._future is None:
            self._ended = torch.futures.Future()
            self._future = self._ended.then(self._outcome)
            if self.is_completed():
                self.settle()
                self.deliver()
            else:
                self._group.complete_later(self)
        return self._future

    def settle(self):
        """Waits for the operations, and keeps what deliver() gives to the future."""
        try:
            self._finish(self.timeout_s)
        except Exception as error:  # the future's owner gets it, whatever it is
            self._failure = error

    def deliver(self):
        """Completes the future, and runs its callbacks."""
        self._ended.set_result(None)
        self._group.forget(self)

    def _outcome(self, _):
        if self._failure is not None:
            raise self._failure
        return self._tensors

    def get_future_result(self):
        raise NotImplementedError("horo: Work.get_future_result() is not supported; use get_future()")

    def source_rank(self):
        return self._source

    def _source_rank(self):
        return self._source

    @property
    def lane(self):
        """Works of one lane complete in their order."""
        return self.operations[0].entry.text if self._source >= 0 else "collectives"
