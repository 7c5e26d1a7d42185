# SPDX-License-Identifier: Apache-2.0
"""horo.torch's collectives give right results for every function, dtype, operation and kind of shape."""

import collections
import os
import threading
import warnings

import torch

import horo.torch as horo
from values import MOVABLE, OPS, REDUCIBLE, SHAPES, equal, part, reduced, rows_of


def check_position():
    assert horo.is_initialized()
    assert horo.size() == int(os.environ.get("HORO_SIZE", "1"))
    assert horo.rank() == int(os.environ.get("HORO_RANK", "0"))
    # All hosts have the same number of ranks and are filled one after the other.
    assert horo.rank() == horo.cross_rank() * horo.local_size() + horo.local_rank()
    assert horo.size() == horo.cross_size() * horo.local_size()
    assert horo.is_homogeneous()
    horo.init()  # a second call does nothing


def check_allreduce_every_dtype_op_shape():
    cases = [(dtype, op, shape) for dtype in REDUCIBLE for op in OPS for shape in SHAPES]
    inputs = [part(horo.rank(), dtype, shape) for dtype, _, shape in cases]
    handles = [
        horo.allreduce_async(mine, op=case[1], name=f"all.{index}")
        for index, (case, mine) in enumerate(zip(cases, inputs))
    ]
    for (dtype, op, shape), mine, handle in zip(cases, inputs, handles):
        equal(horo.synchronize(handle), reduced(op, dtype, shape))
        equal(mine, part(horo.rank(), dtype, shape))


def check_allreduce_in_place():
    mine = part(horo.rank(), torch.float32, (4, 9))
    result = horo.allreduce_(mine, op=horo.Sum, name="in_place")
    assert result is mine
    equal(mine, reduced(horo.Sum, torch.float32, (4, 9)))


def check_default_is_average():
    mine = part(horo.rank(), torch.float64, (5,))
    equal(horo.allreduce(mine), reduced(horo.Average, torch.float64, (5,)))


def check_handles():
    handles = [
        horo.allreduce_async(part(horo.rank(), torch.int32, (50,), i), op=horo.Sum, name=f"h{i}")
        for i in range(100)
    ]
    for i, handle in reversed(list(enumerate(handles))):
        equal(horo.synchronize(handle), reduced(horo.Sum, torch.int32, (50,), i))
    assert horo.synchronize(handles[0]) is None
    try:
        horo.poll(handles[0])
        raise AssertionError("poll of a handle that was waited for")
    except ValueError:
        pass


def check_poll_becomes_true():
    handle = horo.allreduce_async(torch.ones(3), name="polled")
    while not horo.poll(handle):
        pass
    equal(horo.synchronize(handle), torch.ones(3))


def check_scales():
    mine = part(horo.rank(), torch.float32, (8,))
    found = horo.allreduce(mine, op=horo.Sum, prescale_factor=0.5, postscale_factor=4.0)
    equal(found, reduced(horo.Sum, torch.float32, (8,)) * 2)
    found = horo.allreduce(mine.double(), prescale_factor=0.25, name="s")
    equal(found, reduced(horo.Average, torch.float64, (8,)) / 4)


def check_average_keyword():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = horo.allreduce(part(horo.rank(), torch.float32, (3,)), average=False)
    equal(found, reduced(horo.Sum, torch.float32, (3,)))
    assert any(issubclass(warning.category, DeprecationWarning) for warning in seen)


def check_order_may_differ():
    order = list(range(60))
    if horo.rank() % 2:
        order.reverse()
    handles = {}
    for i in order:
        mine = part(horo.rank(), torch.float32, (i,), i)
        handles[i] = horo.allreduce_async(mine, op=horo.Sum, name=f"o{i}")
    for i in range(60):
        equal(horo.synchronize(handles[i]), reduced(horo.Sum, torch.float32, (i,), i))


def check_unnamed_repeat_without_end():
    for start in range(0, 2500, 50):
        shapes = [(i % 5 + 1,) for i in range(start, start + 50)]
        handles = [
            horo.allreduce_async(part(horo.rank(), torch.float32, shape), op=horo.Sum)
            for shape in shapes
        ]
        for shape, handle in zip(shapes, handles):
            equal(horo.synchronize(handle), reduced(horo.Sum, torch.float32, shape))


def check_more_unnamed_in_flight_than_names():
    sums = [horo.allreduce_async(torch.full((2,), i), op=horo.Sum) for i in range(1300)]
    rows = [horo.allgather_async(torch.full((1,), i)) for i in range(1300)]
    for i, handle in enumerate(sums):
        equal(horo.synchronize(handle), torch.full((2,), i * horo.size()))
    for i, handle in enumerate(rows):
        equal(horo.synchronize(handle), torch.full((horo.size(),), i))


def check_signature_of_a_name_may_change():
    for dtype, shape in ((torch.float32, (4,)), (torch.float32, (9,)), (torch.int64, (9,))):
        mine = part(horo.rank(), dtype, shape)
        equal(horo.allreduce(mine, op=horo.Sum, name="changing"), reduced(horo.Sum, dtype, shape))


def check_grouped():
    shapes = ((3,), (2, 2), ())
    mine = [part(horo.rank(), torch.float32, shape) for shape in shapes]
    wanted = [reduced(horo.Sum, torch.float32, shape) for shape in shapes]
    for found in (
        horo.grouped_allreduce(mine, op=horo.Sum, name="group"),
        horo.grouped_allreduce(mine, op=horo.Sum),
        horo.synchronize(horo.grouped_allreduce_async(mine, op=horo.Sum)),
        horo.grouped_allreduce_([tensor.clone() for tensor in mine], op=horo.Sum),
    ):
        for one, other in zip(found, wanted):
            equal(one, other)
    handle = horo.grouped_allreduce_async_(mine, op=horo.Sum, name="group")
    while not horo.poll(handle):
        pass
    for one, other in zip(horo.synchronize(handle), mine):
        assert one is other


def check_bool_is_and_and_or():
    mine = torch.tensor([horo.rank() == 0, True, False, horo.rank() >= 0])
    n = horo.size()
    equal(horo.allreduce(mine, op=horo.Min), torch.tensor([n == 1, True, False, True]))
    equal(horo.allreduce(mine, op=horo.Max), torch.tensor([True, True, False, True]))
    first, count = rows_of(horo.rank(), 4)
    wanted = torch.tensor([True, True, False, True])[first : first + count]
    equal(horo.reducescatter(mine, op=horo.Max), wanted)


def check_adasum():
    n, me = horo.size(), horo.rank()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        same = part(0, dtype, (500,))
        equal(horo.allreduce(same, op=horo.Adasum, name=f"same.{dtype}"), same)
        apart = torch.zeros(n * 300, dtype=dtype)
        apart[me * 300 : (me + 1) * 300] = me + 1
        wanted = torch.arange(1, n + 1).repeat_interleave(300).to(dtype)
        equal(horo.allreduce(apart, op=horo.Adasum, name=f"apart.{dtype}"), wanted)
    shared = horo.shared_zeros(100_000)
    shared[me::n] = 1.0
    equal(horo.allreduce_(shared, op=horo.Adasum, name="shared"), torch.ones(100_000))


def check_broadcast_every_root_and_dtype():
    cases = [
        (root, dtype, shape)
        for root in range(horo.size())
        for dtype in MOVABLE
        for shape in SHAPES
    ]
    inputs = [part(horo.rank(), dtype, shape) for _, dtype, shape in cases]
    for start in (horo.broadcast_async, horo.broadcast_async_):
        handles = [
            start(mine, case[0], name=f"b.{index}")
            for index, (case, mine) in enumerate(zip(cases, inputs))
        ]
        for (root, dtype, shape), mine, handle in zip(cases, inputs, handles):
            found = horo.synchronize(handle)
            equal(found, part(root, dtype, shape))
            assert (found is mine) == (start is horo.broadcast_async_)
            if found is not mine:
                equal(mine, part(horo.rank(), dtype, shape))


def check_broadcast():
    mine = part(horo.rank(), torch.float32, (6,))
    equal(horo.broadcast(mine, 0), part(0, torch.float32, (6,)))
    assert horo.broadcast_(mine, 0) is mine
    equal(mine, part(0, torch.float32, (6,)))


def check_broadcast_async():
    mine = part(horo.rank(), torch.float32, (6,))
    handles = [horo.broadcast_async(mine, root) for root in range(horo.size())]
    for root, handle in enumerate(handles):
        equal(horo.synchronize(handle), part(root, torch.float32, (6,)))
    horo.synchronize(horo.broadcast_async_(mine, 0, name="async_"))
    equal(mine, part(0, torch.float32, (6,)))


def check_large():
    count = 3_000_001
    mine = part(horo.rank(), torch.float32, (count,))
    wanted = reduced(horo.Sum, torch.float32, (count,))
    equal(horo.allreduce_(mine, op=horo.Sum, name="large"), wanted)


def check_float16_rounds_once():
    mine = torch.full((33,), 1.0 if horo.rank() == 0 else 2.0**-12, dtype=torch.float16)
    exact = torch.tensor(1.0 + (horo.size() - 1) * 2.0**-12).to(torch.float16)
    equal(horo.allreduce(mine, op=horo.Sum), exact.expand(33).contiguous())


def check_compression():
    mine = part(horo.rank(), torch.float32, (11,))
    wanted = reduced(horo.Sum, torch.float32, (11,))
    for compression in (horo.Compression.none, horo.Compression.fp16, horo.Compression.bf16):
        equal(horo.allreduce(mine, op=horo.Sum, compression=compression), wanted)
        whole = part(horo.rank(), torch.int32, (5,))
        found = horo.allreduce(whole, op=horo.Sum, compression=compression)
        equal(found, reduced(horo.Sum, torch.int32, (5,)))
    narrow, context = horo.Compression.bf16.compress(mine)
    assert narrow.dtype == torch.bfloat16 and context == torch.float32


def check_gradients_flow():
    n, me = horo.size(), horo.rank()
    for op, scale in ((horo.Sum, n), (horo.Average, 1)):
        x = torch.ones(3, requires_grad=True)
        horo.allreduce(x * 2, op=op, name=f"flow{op}").sum().backward()
        equal(x.grad, torch.full((3,), 2.0 * scale))
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    first, second = horo.grouped_allreduce([x, y * 3], op=horo.Sum)
    (first.sum() + second.sum()).backward()
    equal(y.grad, torch.full((3,), 3.0 * n))
    x = torch.ones(me + 1, 2, requires_grad=True)
    gathered = horo.allgather(x * 2)
    weight = torch.arange(float(len(gathered))).reshape(-1, 1)
    (gathered * weight).sum().backward()
    start = me * (me + 1) // 2
    equal(x.grad, 2 * weight[start : start + me + 1].expand(-1, 2).contiguous())
    x = torch.ones(4, requires_grad=True)
    horo.broadcast(x * 5, n - 1).sum().backward()
    equal(x.grad, torch.full((4,), 5.0 if me == n - 1 else 0.0))


def check_gradients_have_gradients():
    """The gradient of a gradient: of the sum of cubes of the operations' results for `x`."""
    n, me = horo.size(), horo.rank()
    at_root = 1.0 if me == n - 1 else 0.0

    def second(operation, x):
        x = x.clone().requires_grad_()
        cubes = sum((part**3).sum() for part in operation(x))
        (gradient,) = torch.autograd.grad(cubes, x, create_graph=True)
        gradient.sum().backward()
        return x.grad

    ones, mine = torch.ones(n, 2), torch.full((n, 2), me + 1.0)
    equal(second(lambda x: [horo.allreduce(x, op=horo.Sum)], ones), ones * 6 * n**3)
    equal(second(lambda x: horo.grouped_allreduce([x, 2 * x]), ones), ones * (6 + 48))
    equal(second(lambda x: [horo.allgather(x)], mine), mine * 6 / n)
    equal(second(lambda x: horo.grouped_allgather([x, x]), mine), mine * 12 / n)
    equal(second(lambda x: [horo.broadcast(x, n - 1)], ones), ones * 6 / n * at_root)
    equal(second(lambda x: [horo.reducescatter(x, op=horo.Sum)], ones), ones * 6 * n**3)
    equal(second(lambda x: horo.grouped_reducescatter([x, x]), ones), ones * 12)
    equal(second(lambda x: [horo.alltoall(x)], mine), mine * 6)


def check_objects():
    big = {"words": ["a" * 1000] * 50, "rank": horo.rank()}
    found = horo.broadcast_object(big if horo.rank() == 0 else None)
    assert found["rank"] == 0 and len(found["words"]) == 50
    assert horo.broadcast_object((1, 2), root_rank=horo.size() - 1, name="pair") == (1, 2)
    assert horo.allgather_object(["x"] * horo.rank(), name="lists") == [
        ["x"] * rank for rank in range(horo.size())
    ]


def check_broadcast_parameters():
    torch.manual_seed(horo.rank())
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4))
    model[1].num_batches_tracked += horo.rank()
    torch.manual_seed(0)
    wanted = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4)).state_dict()
    horo.broadcast_parameters(model.state_dict(), root_rank=0)
    for key, value in model.state_dict().items():
        equal(value, wanted[key])
    for form in (model.named_parameters(), model.parameters(), list(model.named_parameters())):
        horo.broadcast_parameters(form, root_rank=0)
    transposed = torch.full((2, 3), float(horo.rank())).t()
    complex_one = torch.full((2,), complex(1, horo.rank()))
    horo.broadcast_parameters({"t": transposed, "c": complex_one}, root_rank=horo.size() - 1)
    equal(transposed.contiguous(), torch.full((3, 2), float(horo.size() - 1)))
    equal(complex_one, torch.full((2,), complex(1, horo.size() - 1)))


def check_broadcast_optimizer_state():
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        keywords = {"momentum": 0.9} if kind is torch.optim.SGD else {}
        optimizer = kind(model.parameters(), lr=0.1 * (horo.rank() + 1), **keywords)
        if horo.rank() == 0:  # the other ranks have no state
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
        horo.broadcast_optimizer_state(optimizer, root_rank=0)
        assert optimizer.param_groups[0]["lr"] == 0.1
        states = horo.allgather_object(optimizer.state_dict())
        for index, state in states[0]["state"].items():
            for key, value in state.items():
                for other in states:
                    found = other["state"][index][key]
                    assert torch.equal(torch.as_tensor(found), torch.as_tensor(value)), key


def check_broadcast_optimizer_state_leaves_gradients():
    """As Horovod does: zeros where there were none, if the optimizer has no state yet."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Embedding(4, 2, sparse=True))
    linear, table = model
    table.weight.requires_grad_(horo.rank() >= 0)
    linear.bias.requires_grad_(False)
    linear.weight.grad = torch.ones(2, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    horo.broadcast_optimizer_state(optimizer, root_rank=0, model=model)
    assert torch.equal(linear.weight.grad, torch.ones(2, 3))
    assert linear.bias.grad is None
    assert table.weight.grad.is_sparse and not table.weight.grad.to_dense().any()
    other = torch.nn.Linear(3, 2)
    horo.broadcast_optimizer_state(torch.optim.SGD(other.parameters(), lr=0.1), root_rank=0)
    assert torch.equal(other.weight.grad, torch.zeros(2, 3)) and not other.bias.grad.any()
    stateful = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    stateful.step()
    other.weight.grad = None
    horo.broadcast_optimizer_state(stateful, root_rank=0)
    assert other.weight.grad is None


def check_broadcast_reaches_schedulers():
    """A scheduler made before the distributed optimizer changes the learning rate on all ranks."""
    for op in (horo.Average, horo.Adasum):
        model = torch.nn.Linear(3, 2)
        plain = torch.optim.SGD(model.parameters(), lr=0.5 + horo.rank(), momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(plain, step_size=1, gamma=0.5)
        optimizer = horo.DistributedOptimizer(plain, model.named_parameters(), op=op)
        horo.broadcast_optimizer_state(optimizer, root_rank=0)
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.zero_grad()
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        scheduler.step()
        assert optimizer.param_groups[0]["lr"] == 0.25, optimizer.param_groups[0]["lr"]
        assert plain.state[model.weight] is optimizer.state[model.weight]


Range = collections.namedtuple("Range", "least most")


class Exact(torch.optim.SGD):
    """An optimizer with state of other dtypes than its parameters, and with nested options."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr)
        self.param_groups[0]["range"] = Range(lr, 2 * lr)

    @torch.no_grad()
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            self.state[parameter] = {
                "master": parameter.float() + 1e-4,
                "seen": [torch.tensor([2**24 + 1])],
                "mask": torch.tensor([True, False]),
            }


def check_broadcast_optimizer_state_keeps_dtypes():
    model = torch.nn.Linear(3, 2).to(torch.bfloat16)
    optimizer = Exact(model.parameters(), lr=0.5 * (1 + horo.rank()))
    if horo.rank() == 0:
        optimizer.step()
    horo.broadcast_optimizer_state(optimizer, root_rank=0)
    masters = horo.allgather_object(optimizer.state[model.weight]["master"])
    state = optimizer.state[model.weight]
    assert state["master"].dtype is torch.float32 and torch.equal(state["master"], masters[0])
    assert state["seen"][0].tolist() == [2**24 + 1], state["seen"]
    assert state["mask"].dtype is torch.bool, state["mask"]
    assert optimizer.param_groups[0]["range"] == (0.5, 1.0)


def check_shared_memory():
    before = horo.counters()["direct_bytes"]
    tensor = horo.shared_zeros((1000, 33))
    tensor += part(horo.rank(), torch.float32, (1000, 33))
    horo.allreduce_(tensor, op=horo.Sum, name="shared")
    equal(tensor, reduced(horo.Sum, torch.float32, (1000, 33)))
    if horo.size() > 1:
        in_place = tensor.numel() * 4 if horo.cross_size() == 1 else 0
        assert horo.counters()["direct_bytes"] - before == in_place
    view = tensor[5:7]
    del tensor
    equal(view, reduced(horo.Sum, torch.float32, (1000, 33))[5:7])
    like = horo.alloc_like(torch.ones(3, 2, dtype=torch.bfloat16))
    assert like.shape == (3, 2) and like.dtype == torch.bfloat16
    assert horo.shared_empty((0, 3)).shape == (0, 3) and horo.shared_empty(4).shape == (4,)


def check_shared_memory_is_freed():
    for _ in range(300):  # 300 x 8 MiB would not fit
        horo.shared_empty((2, 1024, 1024))


def check_threads():
    problems = []

    def work(thread):
        try:
            for i in range(15):
                mine = part(horo.rank(), torch.float32, (20,), i)
                found = horo.allreduce(mine, op=horo.Sum, name=f"thread{thread}")
                equal(found, reduced(horo.Sum, torch.float32, (20,), i))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems


def check_counters():
    before = horo.counters()
    horo.allreduce(torch.ones(10), name="counted")
    after = horo.counters()
    assert after["tensors"] == before["tensors"] + 1
    assert after["bytes"] == before["bytes"] + 40


def check_sparse():
    mine = torch.zeros(horo.size() + 1, 3)
    mine[horo.rank() : horo.rank() + 2] = 1.0
    mine = mine.to_sparse(1)
    found = horo.sparse_allreduce_async(mine, "sparse", horo.Sum)()
    wanted = torch.full((horo.size() + 1, 3), 2.0)
    wanted[0] = wanted[-1] = 1.0
    equal(found.to_dense(), wanted)
