# SPDX-License-Identifier: Apache-2.0
"""Ranks that end, leave early, fork or are interrupted, under the real launcher."""

import signal

from job import run_code

LOST = """
    import os, signal, sys
    import numpy
    import horo.numpy as horo
    horo.init()
    horo.allreduce(numpy.ones(1000), name="warm")
    if horo.rank() == 1:
        {end}
    try:
        for i in range(1000):
            horo.allreduce(numpy.ones(100000), name="x")
        raise SystemExit("nothing was noticed")
    except horo.PeerLostError as error:
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
            print("saw:", error)
"""


def test_peer_that_shuts_down():
    done = run_code(2, LEFT.format(end="horo.shutdown()"))
    assert done.code == 0 and "saw:" in done.output, done.output


def test_peer_that_raises_leaves_in_good_order():
    done = run_code(2, LEFT.format(end="raise KeyError('what rank 1 says')"))
    assert done.code == 1, done.output
    assert "what rank 1 says" in done.output and "saw:" in done.output, done.output


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


def test_interrupted_optimizer_can_go_on():
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


def test_forked_loaders_do_not_disturb():
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
