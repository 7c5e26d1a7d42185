# SPDX-License-Identifier: Apache-2.0
"""horo.torch's collectives that move rows: allgather, reducescatter and alltoall."""

import torch

import horo.torch as horo
from values import MOVABLE, OPS, REDUCIBLE, equal, part, reduced, rows_of


def check_allgather_uneven():
    inputs = [part(horo.rank(), dtype, (horo.rank() + 1, 3)) for dtype in MOVABLE]
    handles = [horo.allgather_async(mine, name=f"uneven.{mine.dtype}") for mine in inputs]
    for dtype, handle in zip(MOVABLE, handles):
        wanted = torch.cat([part(rank, dtype, (rank + 1, 3)) for rank in range(horo.size())])
        equal(horo.synchronize(handle), wanted)
    equal(horo.allgather(inputs[0]), horo.allgather(inputs[0], name="named"))


def check_allgather_of_nothing():
    rows = 2 if horo.rank() == horo.size() - 1 else 0
    found = horo.allgather(torch.ones(rows, 4), name="nothing")
    equal(found, torch.ones(2, 4))
    equal(horo.allgather(torch.ones(0, 4)), torch.ones(0, 4))


def check_reducescatter_every_dtype_op_and_remainder():
    shapes = [(0,), (1,), (7,), (9, 3), (8, 2, 2), (257, 33)]
    cases = [(dtype, op, shape) for dtype in REDUCIBLE for op in OPS for shape in shapes]
    inputs = [part(horo.rank(), dtype, shape) for dtype, _, shape in cases]
    handles = [
        horo.reducescatter_async(mine, op=case[1], name=f"rs.{index}")
        for index, (case, mine) in enumerate(zip(cases, inputs))
    ]
    for (dtype, op, shape), mine, handle in zip(cases, inputs, handles):
        first, count = rows_of(horo.rank(), shape[0])
        equal(horo.synchronize(handle), reduced(op, dtype, shape)[first : first + count])
        equal(mine, part(horo.rank(), dtype, shape))


def check_reducescatter_default_scales_and_compression():
    mine = part(horo.rank(), torch.float32, (6, 2))
    first, count = rows_of(horo.rank(), 6)
    mean = reduced(horo.Average, torch.float32, (6, 2))[first : first + count]
    equal(horo.reducescatter(mine), mean)
    found = horo.reducescatter(mine, name="f", prescale_factor=0.5, postscale_factor=4.0)
    equal(found, mean * 2)
    found = horo.reducescatter(mine, "c", horo.Compression.fp16, horo.Sum)
    equal(found, reduced(horo.Sum, torch.float32, (6, 2))[first : first + count])


def sent(source, target):
    """The number of rows that `source` sends to `target`; 0 for some pairs."""
    return (source * 2 + target) % 3


def check_alltoall_with_splits():
    n, me = horo.size(), horo.rank()
    splits = [sent(me, target) for target in range(n)]
    for width in (3, 5000):
        for dtype in MOVABLE:
            # Two rows are not part of the splits and are not sent.
            mine = part(me, dtype, (sum(splits) + 2, width))
            wanted = []
            for source in range(n):
                before = sum(sent(source, target) for target in range(me))
                total = sum(sent(source, target) for target in range(n))
                rows = part(source, dtype, (total + 2, width))
                wanted.append(rows[before : before + sent(source, me)])
            received = torch.tensor([sent(source, me) for source in range(n)], dtype=torch.int32)
            for given in (splits, torch.tensor(splits, dtype=torch.int32)):
                found, counts = horo.alltoall(mine, given, name=f"a2a.{dtype}")
                equal(found, torch.cat(wanted))
                equal(counts, received)


def check_alltoall_equal():
    n, me = horo.size(), horo.rank()
    mine = part(me, torch.float32, (3 * n, 2))
    wanted = torch.cat(
        [part(source, torch.float32, (3 * n, 2))[3 * me : 3 * me + 3] for source in range(n)]
    )
    equal(horo.alltoall(mine), wanted)
    found, counts = horo.synchronize(horo.alltoall_async(mine))
    equal(found, wanted)
    equal(counts, torch.full((n,), 3, dtype=torch.int32))
    found, counts = horo.alltoall(torch.ones(0, 4), torch.tensor([], dtype=torch.int32))
    equal(found, torch.ones(0, 4))
    equal(counts, torch.zeros(n, dtype=torch.int32))


def check_results_of_one_name_do_not_share_memory():
    n = horo.size()
    found = []
    for i in range(5):
        found.append(horo.allgather(torch.full((1000,), float(i)), name="again"))
        found.append(horo.alltoall(torch.full((1000 * n,), float(i)), name="again"))
    for i in range(5):
        equal(found[2 * i], torch.full((1000 * n,), float(i)))
        equal(found[2 * i + 1], torch.full((1000 * n,), float(i)))


def check_grouped_allgather_and_reducescatter():
    n, me = horo.size(), horo.rank()
    shapes = ((me + 1, 2), (0,), (3,))
    found = horo.grouped_allgather([part(me, torch.int32, shape) for shape in shapes], name="gg")
    for index, one in enumerate(found):
        parts = []
        for rank in range(n):
            shape = ((rank + 1, 2), (0,), (3,))[index]
            parts.append(part(rank, torch.int32, shape))
        equal(one, torch.cat(parts))
    shapes = ((5, 2), (n,), (1,))
    mine = [part(me, torch.float32, shape) for shape in shapes]
    for found in (
        horo.grouped_reducescatter(mine, op=horo.Sum, name="gr"),
        horo.synchronize(horo.grouped_reducescatter_async(mine, op=horo.Sum)),
    ):
        for shape, one in zip(shapes, found):
            first, count = rows_of(me, shape[0])
            equal(one, reduced(horo.Sum, torch.float32, shape)[first : first + count])


def check_gradients_flow_through_scatter_and_alltoall():
    n, me = horo.size(), horo.rank()
    for op, scale in ((horo.Sum, n), (horo.Average, 1)):
        x = torch.ones(n + 1, 2, requires_grad=True)
        mine = horo.reducescatter(x * 3, op=op, name=f"back{op}", postscale_factor=2.0)
        (mine * (me + 1)).sum().backward()
        _, counts = zip(*[rows_of(rank, n + 1) for rank in range(n)])
        owner = torch.cat([torch.full((count, 2), rank + 1.0) for rank, count in enumerate(counts)])
        equal(x.grad, owner * 3 * 2 * scale)
    x = torch.ones(n * 2 + 1, requires_grad=True)
    received, _ = horo.alltoall(x * 2, [2] * n, name="there")
    (received * (me + 1)).sum().backward()
    wanted = torch.arange(1.0, n + 1).repeat_interleave(2) * 2
    equal(x.grad, torch.cat([wanted, torch.zeros(1)]))
    x, y = torch.ones(me + 1, requires_grad=True), torch.ones(2, requires_grad=True)
    first, second = horo.grouped_allgather([x, y * 2], name="both")
    (first.sum() + second.sum()).backward()
    equal(x.grad, torch.ones(me + 1))
    equal(y.grad, torch.full((2,), 2.0))
    x = torch.ones(n, requires_grad=True)
    (mine,) = horo.grouped_reducescatter([x], op=horo.Sum, name="one")
    mine.sum().backward()
    equal(x.grad, torch.full((n,), float(n)))
