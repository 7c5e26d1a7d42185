# SPDX-License-Identifier: Apache-2.0
"""With more names than the runtime keeps, unused names are evicted and declared again later."""

import textwrap

from horo import _handles, _names
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
            # A name that was evicted long ago, and an old name with another signature.
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


def test_evicted_names_can_be_used_again():
    for ranks in (1, 3):
        done = run(ranks, ["-c", textwrap.dedent(FRESH)], HORO_CACHE_CAPACITY="16")
        assert done.code == 0, done.output
        for rank in range(ranks):
            assert f"rank {rank} is through" in done.output, done.output


def test_names_in_flight_are_kept(monkeypatch):
    """A further name does not search them all. They are dropped once they have ended."""
    looks, forget = [], _names.Names._forget_old
    monkeypatch.setattr(_handles, "PENDING", {})
    monkeypatch.setattr(
        _names.Names, "_forget_old", lambda self, kind: (looks.append(kind), forget(self, kind))
    )
    names = _names.Names(0)
    for handle in range(1, 4 * _names.NAMED):
        names.record(0, f"in flight.{handle}").handle = handle
        _handles.PENDING[handle] = ()
    assert len(looks) < 10, len(looks)
    assert len(names.records[0]) == 4 * _names.NAMED - 1
    _handles.PENDING.clear()
    for number in range(4 * _names.NAMED):
        names.record(0, f"after.{number}")
    assert len(names.records[0]) <= _names.NAMED


def test_groups_fuse_only_inside_if_the_user_says_so():
    """The cycle time lets both groups and the single tensor become ready before anything runs."""
    code = """
        import numpy
        import horo.numpy as horo
        horo.init()
        tensors = [numpy.ones(3, numpy.float32) for _ in range(2)]
        handles = [horo.grouped_allreduce_async(tensors, name=name) for name in ("g", "h")]
        handles.append(horo.allreduce_async(tensors[0], name="single"))
        for handle in handles:
            horo.synchronize(handle)
        assert horo.counters()["entries"] >= {least}, horo.counters()
        """
    for groups, least in (("1", 3), ("0", 1)):
        done = run(
            2,
            ["-c", textwrap.dedent(code.format(least=least))],
            HOROVOD_DISABLE_GROUP_FUSION=groups,
            HORO_CYCLE_TIME="500ms",
        )
        assert done.code == 0, done.output
