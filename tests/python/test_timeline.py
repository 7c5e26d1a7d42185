# SPDX-License-Identifier: Apache-2.0
"""A trace that the program itself starts and stops while the job runs."""

import json
import os
import subprocess
import textwrap

from job import HORO, run, run_code

VIEW = os.path.join(os.path.dirname(HORO), "horo-timeline-view")

TRACED = """
    import numpy
    import horo.numpy as horo
    horo.init()
    horo.allreduce(numpy.ones(10), name="before")
    horo.start_timeline({path!r}, mark_cycles=True)
    for i in range(3):
        horo.allreduce(numpy.ones(1000, dtype="float32"), name="inside")
    horo.start_timeline({path!r})  # the trace continues
    horo.broadcast(numpy.ones((2, 3)), root_rank=0, name="second")
    horo.stop_timeline()
    horo.barrier()  # otherwise rank 1 might submit the next one before rank 0 stops its trace
    horo.allreduce(numpy.ones(10), name="after")
    horo.stop_timeline()  # no trace: does nothing
    try:
        horo.start_timeline({path!r} + "/no/such")
        assert horo.rank() != 0
    except horo.HoroError:
        assert horo.rank() == 0
    horo.shutdown()
"""


SETS = """
    import os, numpy, time
    import horo.numpy as horo
    horo.init()
    directory = os.environ["HORO_TIMELINE_DIRECTORY"]
    for i, ranks in enumerate([[0, 1], [1, 2], [0, 1]]):
        some = horo.add_process_set(ranks)
        assert some.process_set_id == 1
        for step in range(20) if some.included() else ():
            horo.allreduce(numpy.ones(1000), name="step", process_set=some)
        horo.remove_process_set(some)
    horo.allreduce(numpy.ones(1000), name="last")
    open(os.path.join(directory, "done.%d" % horo.rank()), "w").close()
    if horo.rank() == 0:
        # A rank that the end of this one stops earlier has not recorded the last sum.
        while not all(os.path.exists(os.path.join(directory, "done.%d" % rank)) for rank in range(3)):
            time.sleep(0.01)
        os._exit(3)
    horo.barrier()
"""


def test_process_sets_that_reuse_a_number_are_kept_apart(tmp_path):
    done = run(3, ["-c", textwrap.dedent(SETS)], HORO_TIMELINE_DIRECTORY=str(tmp_path))
    assert done.code == 3, done.output
    seen = subprocess.run([VIEW, str(tmp_path), "--json"], stdout=subprocess.PIPE, timeout=60, check=True)
    figures = json.loads(seen.stdout)
    members = {rank["rank"]: rank["arrivals"] for rank in figures["ranks"]}
    world = members[2] - 20
    assert members == {0: world + 40, 1: world + 60, 2: world + 20}, members
    assert figures["operations"] >= 60 + world, figures


def test_a_trace_holds_the_operations_between_start_and_stop(tmp_path):
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
