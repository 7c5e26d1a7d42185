# SPDX-License-Identifier: Apache-2.0
"""When a reduction starts that no rank waits for yet."""

import textwrap

from job import run

# Both ranks run on one core. Each turn submits a tensor that fills a bucket and calls `look` before any wait.
SUBMITTED = """
    import os, time, numpy
    os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
    import horo.numpy as horo
    horo.init()
    def meet(what):
        open(f"{{os.environ['MEET']}}/{{what}}.{{horo.rank()}}", "w").close()
        wait_for(lambda: all(os.path.exists(f"{{os.environ['MEET']}}/{{what}}.{{r}}") for r in (0, 1)))
    def wait_for(happens):
        until = time.monotonic() + 60
        while not happens():
            assert time.monotonic() < until, "it does not happen"
            time.sleep(0.001)
    values = numpy.full(1 << 20, horo.rank() + 1, dtype="float32")
    horo.allreduce(values, name="values", op=horo.Sum)
    begun = []
    for turn in range(10):
        meet(f"came.{{turn}}")
        before = horo.counters()["entries"]
        pending = horo.allreduce_async(values, name="values", op=horo.Sum)
        meet(f"submitted.{{turn}}")
        {look}
        begun.append(horo.counters()["entries"] - before)
        meet(f"looked.{{turn}}")
        assert (horo.synchronize(pending) == 3).all()
        assert horo.counters()["entries"] == before + 1
    assert {wanted}, begun
    horo.shutdown()
"""


def submit(look, wanted, tmp_path, **environment):
    program = textwrap.dedent(SUBMITTED.format(look=look, wanted=wanted))
    environment = {"MEET": str(tmp_path), "HORO_FUSION_THRESHOLD": "1MiB", **environment}
    done = run(2, ["-c", program], **environment)
    assert done.code == 0, done.output


def test_a_full_bucket_starts_at_the_first_wait_when_ranks_need_every_core(tmp_path):
    # Sometimes a thread is still awake from the previous turn and starts the reduction.
    submit("time.sleep(0.1)", "begun.count(0) >= 2", tmp_path)


def test_a_full_bucket_starts_by_itself_when_a_wake_delay_is_set(tmp_path):
    look = 'wait_for(lambda: horo.counters()["entries"] > before)'
    submit(look, "begun == [1] * 10", tmp_path, HORO_WAKE_DELAY="50us")
