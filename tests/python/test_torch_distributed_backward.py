# SPDX-License-Identifier: Apache-2.0
"""Which thread completes the futures that DistributedDataParallel waits for."""

import textwrap

import torch

from job import run

# Both ranks run on one core, so that the runtime leaves sums to the threads that wait for them.
MODEL = """
    import os, threading
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import torch
    import torch.distributed as dist
    import horo.torch.distributed
    from horo.torch.distributed import _backward
    from torch.nn import Linear, Sequential
    from torch.nn.parallel import DistributedDataParallel

    _backward.PATIENCE_S = 1e6
    dist._DEFAULT_FIRST_BUCKET_BYTES = 100  # so that older versions of torch make several buckets, too
    dist.init_process_group("horo")
    layers = Sequential(*(Linear(8, 8) for _ in range(4)))

    def train(hook=None, **options):
        network = DistributedDataParallel(layers, bucket_cap_mb=0.0001, **options)
        if hook is not None:
            network.register_comm_hook(None, hook)
        for step in range(3):
            network.zero_grad()
            torch.manual_seed(10 * step + dist.get_rank())
            network(torch.randn(2, 8)).square().sum().backward()
        mean = [parameter.grad.clone() for parameter in network.parameters()]
        for one in mean:
            dist.all_reduce(one, op=dist.ReduceOp.AVG)
        for one, parameter in zip(mean, network.parameters()):
            torch.testing.assert_close(one, parameter.grad)

    def threads():
        names = {thread.name for thread in threading.enumerate()}
        return sorted(name for name in names if name.startswith("horo-futures"))
"""
END = """
    dist.barrier()
    dist.destroy_process_group()
"""


def train(code, end=END, **environment):
    program = textwrap.dedent(MODEL) + textwrap.dedent(code) + textwrap.dedent(end)
    done = run(2, ["-c", program], limit=120, **environment)
    assert done.code == 0, done.output
    return done.output


def test_backward_waits_for_its_sums_itself_where_ranks_need_every_core():
    code = """
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    train()
    train(gradient_as_bucket_view=True)
    train(default_hooks.allreduce_hook)
    print("threads", threads(), flush=True)
    """
    assert train(code).count("threads ['horo-futures-late']") == 2


def test_a_thread_waits_beside_backward_where_sums_are_to_begin_at_once():
    code = """
    train()
    print("threads", threads(), flush=True)
    """
    found = train(code, HORO_WAKE_DELAY="50us")
    assert found.count("threads ['horo-futures-0'") == 2 and "horo-futures-late" not in found, found


def test_hooks_that_wait_within_backward():
    code = """
    def hook(_, bucket):
        first = dist.all_reduce(torch.ones(1), async_op=True).get_future()
        assert first.wait()[0].item() == 2
        half = bucket.buffer().div_(2)
        return dist.all_reduce(half, async_op=True).get_future().then(lambda done: done.value()[0])

    train(hook)
    """
    train(code)


def test_a_training_whose_first_sums_all_begin_after_backward():
    patience = "" if hasattr(torch._C, "_current_autograd_node") else "_backward.PATIENCE_S = 0.05"
    train(f"""
    {patience}
    train(static_graph=True)
    """)


def test_a_future_that_something_unknown_waits_for_within_backward():
    code = """
    _backward.PATIENCE_S = 0.05
    _backward._NEVER_WAIT += ("__main__",)

    def hook(_, bucket):
        half = bucket.buffer().div_(2)
        future = dist.all_reduce(half, async_op=True).get_future()
        future.wait()
        return future.then(lambda done: done.value()[0])

    train(hook)
    """
    train(code)


def test_backward_that_fails_leaves_no_future_open():
    code = """
    network = DistributedDataParallel(layers, bucket_cap_mb=0.0001)
    for _ in range(2):  # the second step makes several buckets
        network(torch.ones(2, 8)).sum().backward()
    for parameter in layers[0].parameters():
        parameter.register_hook(lambda _: 1 / 0)
    asked = []
    kind = type(dist.group.WORLD)
    begin = kind.allreduce

    def allreduce(*given):
        asked.append(begin(*given))
        return asked[-1]

    kind.allreduce = allreduce
    try:
        network(torch.ones(2, 8)).sum().backward()
    except ZeroDivisionError:
        print("failed as it should", flush=True)
    kind.allreduce = begin
    dist.barrier()
    futures = [work.get_future() for work in asked]
    group = dist.distributed_c10d._get_default_group()
    dist.destroy_process_group()  # completes them
    if not group.state.domain.closing:
        group.shutdown()  # older versions of torch do not call it
    assert futures
    for future in futures:
        future.wait()
    """
    assert train(code, end="").count("failed as it should") == 2


NOT_ALL = """
    import datetime
    network = DistributedDataParallel(layers, bucket_cap_mb=0.0001)
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    if dist.get_rank() == 0:
        try:
            {begin}
            network(torch.ones(2, 8)).sum().backward()
            raise SystemExit("backward without rank 1")
        except RuntimeError as error:
            print("backward failed:", error, flush=True)
        store.set("ended", "1")
    else:
        store.wait(["ended"], datetime.timedelta(seconds=100))
    dist.destroy_process_group()
"""


def test_a_sum_that_no_other_rank_begins_is_an_error_of_backward():
    found = train(NOT_ALL.format(begin="dist.group.WORLD.set_timeout(datetime.timedelta(seconds=2))"), end="")
    assert "backward failed:" in found and "timeout after 2 s: all_reduce" in found, found
    assert "rank 1 of the group did not call it" in found, found


def test_abort_ends_a_backward_that_waits():
    begin = "threading.Timer(0.5, dist.group.WORLD.abort).start()"
    found = train(NOT_ALL.format(begin=begin), end="")
    assert "backward failed:" in found and "was aborted" in found, found
