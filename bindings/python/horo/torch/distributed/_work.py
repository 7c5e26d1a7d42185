# SPDX-License-Identifier: Apache-2.0
"""torch's Work over our operations."""

from __future__ import annotations

import contextlib
import datetime
import threading
from typing import Any

import torch
from torch.distributed import Work

from horo.torch.distributed import _backward

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
        self._after_error: Exception | None = None
        self._ended: Any = None
        self._future: Any = None
        self._failure: Exception | None = None
        self._claims: Any = None  # whoever takes it completes the future
        self.timeout_s = group.timeout_s

    def is_bare(self):
        """The operations are all that it has to do."""
        return self._once is None

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
        if self._once is not None:
            self._run_after()

    def _run_after(self):
        """Runs after() at the first call. Fails: with its error, at every call."""
        with self._once:
            after, self._after = self._after, None
            if after is not None:
                try:
                    after()
                except Exception as error:
                    self._after_error = error
        if self._after_error is not None:
            raise self._after_error

    def synchronize(self):
        self.wait()

    def is_completed(self):
        """Whether the result is there. True also when an operation has failed."""
        if not all(operation.poll() for operation in self.operations):
            return False
        if self._once is not None and self.exception() is None:
            with contextlib.suppress(Exception):  # wait() raises it
                self._run_after()
        return True

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def exception(self):
        """The first error, or None."""
        failed = (one.error for one in self.operations if one.done and one.error)
        return next(failed, self._after_error)

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
            self._claims = threading.Lock()
            self._ended = torch.futures.Future()
            self._future = self._ended.then(self._outcome)
            if _backward.is_asked_within() and self._group.complete_after_backward(self):
                return self._future
            if self.is_completed():
                self.complete()
            elif self.claim():
                self._group.complete_later(self)
        return self._future

    def claim(self):
        """True for one caller, which completes the future."""
        return self._claims.acquire(blocking=False)

    def is_claimed(self):
        return self._claims.locked()

    def complete(self):
        """Completes the future, unless another caller does. Blocks until the operations are done."""
        if self.claim():
            self.settle()
            self.deliver()

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
