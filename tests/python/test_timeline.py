# SPDX-License-Identifier: Apache-2.0
"""A trace that the program itself begins and ends, while the job runs."""

import json

from job import run_code

TRACED = """
    import numpy
    import horo.numpy as horo
    horo.init()
    horo.allreduce(numpy.ones(10), name="before")
    horo.start_timeline({path!r}, mark_cycles=True)
    for i in range(3):
        horo.allreduce(numpy.ones(1000, dtype="float32"), name="inside")
    horo.start_timeline({path!r})  # Goes on.
    horo.broadcast(numpy.ones((2, 3)), root_rank=0, name="second")
    horo.stop_timeline()
    horo.allreduce(numpy.ones(10), name="after")
    horo.stop_timeline()  # Nothing is written; nothing happens.
    try:
        horo.start_timeline({path!r} + "/no/such")
        assert horo.rank() != 0
    except horo.HoroError:
        assert horo.rank() == 0
    horo.shutdown()
"""


def test_a_trace_holds_what_ran_between_start_and_stop(tmp_path):
    path = str(tmp_path / "trace.json")
    done = run_code(2, TRACED.format(path=path))
    assert done.code == 0, done.output
    events = json.load(open(path))
    rows = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["pid"]}
    assert any("inside" in name for name in rows.values()), rows
    assert any("second" in name for name in rows.values()), rows
    assert not any("before" in name or "after" in name for name in rows.values()), rows
    begun = [e["name"] for e in events if e["ph"] == "B"]
    assert begun.count("NEGOTIATE_ALLREDUCE") == begun.count("ALLREDUCE") == 3, begun
    assert begun.count("BROADCAST") == 1, begun
    ends = [e["args"] for e in events if e["ph"] == "E" and "args" in e]
    assert {"dtype": "float32", "shape": "[1000]"} in ends and {"dtype": "float64", "shape": "[2, 3]"} in ends, ends
    assert any(e["name"] == "CYCLE_START" for e in events if "name" in e)
