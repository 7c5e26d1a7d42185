# SPDX-License-Identifier: Apache-2.0
"""Far more names than the runtime keeps: those that are not in use give way, and come back."""

import textwrap

from job import run

FRESH = """
    import numpy
    import horo.numpy as horo
    horo.init()
    ranks = horo.size()
    total = ranks * (ranks + 1) // 2
    mine = horo.rank() + 1

    def check(name, dtype, count):
        found = horo.allreduce(numpy.full(count, mine, dtype), name=name, op=horo.Sum)
        assert found.dtype == dtype and (found == total).all(), (name, found)

    for step in range(600):
        check(f"fresh.{step}", "float32", step % 7 + 1)
        check("kept", "float64", 3)
        if step % 50 == 0:
            # Declared long ago, forgotten since; and an old name as something else.
            check("rare", "int32", 2000)
            check("fresh.0", "int64" if step % 100 == 0 else "float32", 5)
        if step % 20 == 0:
            group = [numpy.full(2, mine, "float32") for _ in range(3)]
            for found in horo.grouped_allreduce(group, name=f"group.{step % 60}", op=horo.Sum):
                assert (found == total).all(), found
            rows = horo.allgather(numpy.full((mine, 2), mine, "int64"), name=f"rows.{step}")
            assert len(rows) == total, rows
    print("rank", horo.rank(), "is through", flush=True)
    horo.shutdown()
"""


def test_fresh_names():
    for ranks in (1, 3):
        done = run(ranks, ["-c", textwrap.dedent(FRESH)], HORO_CACHE_CAPACITY="16")
        assert done.code == 0, done.output
        for rank in range(ranks):
            assert f"rank {rank} is through" in done.output, done.output
