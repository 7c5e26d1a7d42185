# SPDX-License-Identifier: Apache-2.0
import textwrap

from job import run, run_code

JOB = "numpy_sets"
RANKS = (2, 3, 4)


def test_job(checked, ranks, check):
    checks = checked(JOB, ranks)
    if check == "clean_end":
        checks.require_clean_end()
    else:
        checks.require(check)


def test_sets_given_to_init():
    done = run_code(
        3,
        """
        import numpy
        import horo.numpy as horo
        first = horo.ProcessSet([2, 0])
        for wrong in ([first, [0, 2]], [[0], [0]], "static", [7.5]):
            try:
                horo.init(process_sets=wrong)
                raise SystemExit("accepted")
            except ValueError as error:
                assert not horo.is_initialized(), error
        same, second = horo.init(process_sets=[first, [1]])
        assert same is first and (first.process_set_id, second.process_set_id) == (1, 2)
        assert horo.get_process_set_ids_and_ranks() == {0: [0, 1, 2], 1: [0, 2], 2: [1]}
        own = first if first.included() else second
        assert horo.allreduce(numpy.ones(2), op=horo.Sum, process_set=own)[0] == len(own.ranks)
        horo.shutdown()
        assert first.process_set_id is None and second.process_set_id is None
        """,
    )
    assert done.code == 0, done.output


def test_one_rank_with_its_world():
    done = run_code(
        1,
        """
        import numpy
        import horo.numpy as horo
        horo.init(process_sets="dynamic")
        assert horo.join() == 0
        assert horo.allreduce(numpy.ones(1), process_set=horo.global_process_set)[0] == 1
        try:
            horo.add_process_set([0])
            raise SystemExit("the world twice")
        except ValueError as error:
            assert "already" in str(error), error
        """,
    )
    assert done.code == 0, done.output


def test_unnamed_calls_do_not_fill_the_table():
    code = """
        import numpy
        import horo.numpy as horo
        horo.init()
        parts = [numpy.ones(2)] * 3
        for i in range(2500):
            horo.barrier()
            if i % 5 == 0:
                horo.grouped_allreduce(parts)
        """
    done = run(2, ["-c", textwrap.dedent(code)], HORO_CACHE_CAPACITY="2048")
    assert done.code == 0, done.output


INTERRUPTED = """
    import os, signal, threading, time
    import horo.numpy as horo
    horo.init()
    if horo.rank() == 0:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            horo.join()
            raise SystemExit("joined without rank 1")
        except KeyboardInterrupt:
            open({path!r}, "w").close()
    else:
        while not os.path.exists({path!r}):
            time.sleep(0.01)
    assert horo.join() == 1
"""


def test_interrupted_join_continues(tmp_path):
    done = run_code(2, INTERRUPTED.format(path=str(tmp_path / "interrupted")))
    assert done.code == 0, done.output
