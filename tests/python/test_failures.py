# SPDX-License-Identifier: Apache-2.0
"""Ranks that end, leave early, fork or are interrupted, under the real launcher."""

import signal
import textwrap

from job import run, run_code

LOST = """
    import os, signal, sys
    import numpy
    import horo.numpy as horo
    horo.init()
    try:
        # Rank 1 may end before all others have finished this operation, which then fails for them.
        horo.allreduce(numpy.ones(1000), name="warm")
        if horo.rank() == 1:
            {end}
        for i in range(1000):
            horo.allreduce(numpy.ones(100000), name="x")
        raise SystemExit("nothing was noticed")
    except horo.PeerLostError as error:
        assert (error.status, error.ranks) == ("peer_lost", (1,)), vars(error)
        print("rank", horo.rank(), "saw:", error, flush=True)
    try:
        horo.allreduce(numpy.ones(1), name="after")
        raise SystemExit("worked after the loss")
    except horo.PeerLostError:
        print("rank", horo.rank(), "refused", flush=True)
"""


def check_loss(ranks, end, code, *words):
    done = run_code(ranks, LOST.format(end=end))
    assert done.code == code, done.output
    for rank in range(ranks):
        if rank != 1:
            assert f"rank {rank} saw:" in done.output, done.output
            assert f"rank {rank} refused" in done.output, done.output
    line = next(line for line in done.output.splitlines() if "rank 0 saw:" in line)
    for word in words:
        assert word in line, line


def test_peer_that_exits():
    check_loss(2, "os._exit(3)", 3, "rank 1", "3")


def test_peer_that_is_killed():
    check_loss(4, "os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL, "rank 1", "SIGKILL")


LEFT = """
    import numpy
    import horo.numpy as horo
    horo.init()
    horo.allreduce(numpy.ones(10), name="x")
    if horo.rank() == 1:
        {end}
    else:
        try:
            horo.allreduce(numpy.ones(10), name="y")
            raise SystemExit("a collective without its peer")
        except horo.ShutDownError as error:
            assert (error.status, error.ranks) == ("shut_down", (1,)), vars(error)
            print("saw:", error)
"""


def test_peer_that_shuts_down():
    done = run_code(2, LEFT.format(end="horo.shutdown()"))
    assert done.code == 0 and "saw:" in done.output, done.output


def test_peer_that_raises_an_exception_leaves_in_good_order():
    done = run_code(2, LEFT.format(end="raise KeyError('what rank 1 says')"))
    assert done.code == 1, done.output
    assert "what rank 1 says" in done.output and "saw:" in done.output, done.output


NEVER_THERE = """
    import os, pathlib, sys, time
    mark = pathlib.Path({mark!r})
    def await_mark():
        while not mark.exists():
            time.sleep(0.01)
    def set_mark():
        mark.with_suffix(".new").write_text(str(os.getpid()))
        mark.with_suffix(".new").rename(mark)
    if os.environ["HORO_RANK"] == "1":
        {end}()
        sys.exit(0)
    import horo.numpy as horo
    {begin}()
    while {end} == set_mark and os.path.exists("/proc/" + mark.read_text()):
        time.sleep(0.01)
    try:
        horo.init()
        raise SystemExit("init without rank 1")
    except horo.PeerLostError as error:
        print("saw:", error)
"""


def check_never_there(folder, begin, end):
    code = NEVER_THERE.format(mark=str(folder / "mark"), begin=begin, end=end)
    done = run(2, ["-c", textwrap.dedent(code)], limit=60, options=["--start-timeout", "600"])
    assert "saw: rank 0 waited for rank 1, which ended before it called horo_init" in done.output, done.output


def test_peer_that_ended_before_this_rank_calls_init(tmp_path):
    check_never_there(tmp_path, begin="await_mark", end="set_mark")


def test_peer_that_ends_while_this_rank_waits_in_init(tmp_path):
    check_never_there(tmp_path, begin="set_mark", end="await_mark")


def test_interrupt_during_a_wait():
    done = run_code(
        2,
        """
        import os, signal, threading
        import numpy
        import horo.numpy as horo
        horo.init()
        if horo.rank() == 0:
            handle = horo.allreduce_async(numpy.full(5, 2.0), name="late", op=horo.Sum)
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                horo.synchronize(handle)
                raise SystemExit("not interrupted")
            except KeyboardInterrupt:
                pass
            horo.allreduce(numpy.ones(1), name="go")
            assert horo.synchronize(handle).tolist() == [5.0] * 5
        else:
            horo.allreduce(numpy.ones(1), name="go")
            horo.allreduce(numpy.full(5, 3.0), name="late", op=horo.Sum)
        print("rank", horo.rank(), "done")
        """,
    )
    assert done.code == 0, done.output
    assert "rank 0 done" in done.output and "rank 1 done" in done.output, done.output


def test_interrupted_optimizer_can_continue():
    done = run_code(
        2,
        """
        import os, signal, threading
        import torch
        import horo.torch as horo
        horo.init()
        layer = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.ones_(layer.weight)
        optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
        optimizer = horo.DistributedOptimizer(optimizer, layer.named_parameters())
        if horo.rank() == 1:
            horo.allreduce(torch.ones(1), name="go")
        layer(torch.ones(1, 2) * (horo.rank() + 1)).sum().backward()
        if horo.rank() == 0:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                optimizer.step()
                raise SystemExit("not interrupted")
            except KeyboardInterrupt:
                pass
            horo.allreduce(torch.ones(1), name="go")
        optimizer.step()
        assert layer.weight.tolist() == [[-0.5, -0.5]], layer.weight
        print("rank", horo.rank(), "done")
        """,
    )
    assert done.code == 0, done.output


INTERRUPTED_AT_THE_END = """
    import os, signal, threading, time
    import numpy, torch
    import horo.numpy as on_numpy
    import horo.torch as horo
    from horo import _handles
    horo.init()
    _handles.SLICE_MS = 100000  # the operation completes in the slice in which the signal arrives
    me = horo.rank()

    def strided(value):
        return torch.full((3, 4), value).t()

    model = torch.nn.Linear(2, 3)
    rows = torch.nn.Embedding(5, 2, sparse=True)
    optimizer = torch.optim.SGD([*model.parameters(), *rows.parameters()], lr=0.1)
    optimizer = horo.DistributedOptimizer(optimizer, compression=horo.Compression.fp16)
    def step():
        optimizer.zero_grad()
        model(torch.ones(1, 2) * (me + 1)).sum().backward()
        rows(torch.tensor([me, me, 4])).sum().backward()
    step()
    optimizer.step()
    horo.barrier()

    def reduced():
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            return model.weight.grad[0].tolist(), rows.weight.grad.to_dense()[:, 0].tolist()

    several = [torch.full((2,), float(i)) for i in range(3)]
    cases = [
        (lambda: horo.allreduce_async_(torch.ones(3), name="sum", op=horo.Sum), [2.0] * 3),
        (lambda: horo.allreduce_async_(strided(1.0), name="strided", op=horo.Sum), [[2.0] * 3] * 4),
        (lambda: horo.allgather_async(torch.full((1,), me), name="rows"), [0, 1]),
        (lambda: horo.grouped_allreduce_async(several, op=horo.Sum), [[0.0] * 2, [2.0] * 2, [4.0] * 2]),
        (lambda: on_numpy.allreduce_async(numpy.ones((2, 2))[:, :1], op=horo.Sum), [[2.0]] * 2),
        (step, ([1.5] * 2, [1.0, 1.0, 0.0, 0.0, 1.0])),
    ]
    for number, (start, wanted) in enumerate(cases):
        go = {directory!r} + "/" + str(number)
        def interrupt():
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
            open(go, "w").close()
        while me == 1 and not os.path.exists(go):
            time.sleep(0.01)
        handle = start()
        wait = reduced if handle is None else lambda: horo.synchronize(handle)
        if me == 0:
            threading.Thread(target=interrupt).start()
            try:
                wait()
                raise SystemExit(f"{{number}}: not interrupted")
            except KeyboardInterrupt:
                pass
        found = wait()
        if isinstance(found, list):
            found = [one.tolist() for one in found]
        elif not isinstance(found, tuple):
            found = found.tolist()
        assert found == wanted, (number, found, wanted)
    step()
    optimizer.step()
    print("rank", me, "done")
"""


def test_interrupt_at_the_moment_of_completion(tmp_path):
    """The next wait returns the result of a wait that a signal handler interrupted."""
    done = run_code(2, INTERRUPTED_AT_THE_END.format(directory=str(tmp_path)))
    assert done.code == 0 and done.output.count("done") == 2, done.output


def test_forked_loaders_do_not_disturb_the_job():
    done = run_code(
        2,
        """
        import torch
        import horo.torch as horo
        horo.init()
        data = torch.utils.data.TensorDataset(torch.arange(16.0).reshape(16, 1))
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
        for (batch,) in loader:
            total = horo.allreduce(batch, op=horo.Sum, name="batch")
            assert torch.equal(total, batch * 2)
        print("rank", horo.rank(), "done")
        """,
    )
    assert done.code == 0, done.output


def test_report_names_the_rank_whose_exception_came_first():
    """Its peer sees it leave before its process has ended."""
    done = run_code(
        2,
        """
        import atexit, time
        import numpy
        import horo.numpy as horo
        atexit.register(lambda: time.sleep(3 * horo.leaver))  # runs after Horo's own
        horo.init()
        horo.leaver = horo.rank()
        horo.barrier()
        if horo.rank() == 1:
            raise ValueError("my own mistake")
        try:
            horo.allreduce(numpy.ones(4))
        except horo.HoroError as error:
            raise RuntimeError("no step") from error
        """,
    )
    assert done.code == 1 and "ShutDownError" in done.output, done.output
    assert "rank 1 on localhost failed first" in done.output, done.output
