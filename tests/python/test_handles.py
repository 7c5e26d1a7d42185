# SPDX-License-Identifier: Apache-2.0
"""Operations between their submission and their result."""

import collections
import textwrap

from horo import _handles
from job import run


def test_an_operation_that_failed_early_keeps_its_own_error():
    """More unnamed operations in flight than names: the oldest are waited for early."""
    code = """
        import numpy
        import horo.numpy as horo
        from horo import _handles
        horo.init()
        wrong = numpy.ones(1, numpy.float32 if horo.rank() == 0 else numpy.float64)
        first, second = [horo.allgather_async(wrong, name=name) for name in ("first", "second")]
        _handles.settle(first)
        for name, handle in (("second", second), ("first", first)):
            try:
                horo.synchronize(handle)
            except horo.MismatchError as error:
                assert f"'allgather.{name}'" in str(error), (name, str(error))
            else:
                raise AssertionError(name)
        print("rank", horo.rank(), "is through")
    """
    done = run(2, ["-c", textwrap.dedent(code)])
    assert done.code == 0, done.output
    assert done.output.count("is through") == 2


def test_streams_come_behind_operations_that_are_forgotten(monkeypatch):
    """After a loss a busy device still writes to the buffers of operations that have failed."""
    waits = []
    monkeypatch.setattr(_handles, "wait_stream", lambda handle, stream: waits.append((handle, stream)))
    monkeypatch.setattr(_handles, "PENDING", {5: (None, [], None), -1: ([], [5], None)})
    monkeypatch.setattr(_handles, "_retired", {6: (None, True)})
    monkeypatch.setattr(_handles, "_late_errors", collections.deque())
    _handles.forget([70, 80])
    assert waits == [(5, 70), (5, 80), (6, 70), (6, 80)]
    assert not _handles.PENDING and not _handles._retired
