# SPDX-License-Identifier: Apache-2.0
"""horo.torch's collectives on tensors with strides, complex numbers and conjugated numbers. All
functions accept them, and those in place write the result back."""

import torch
from expect import fails

import horo.torch as horo
from values import OPS, equal, part, reduced, rows_of


def strided(shape, seed=0, dtype=torch.float32, rank=None):
    """The numbers of part() in four layouts that are not contiguous."""
    whole = part(horo.rank() if rank is None else rank, dtype, shape, seed)
    rows, columns = shape
    every_other = torch.zeros(rows, 2 * columns, dtype=dtype)
    every_other[:, ::2] = whole
    inside = torch.full((rows + 2, columns + 3), 77).to(dtype)
    inside[1:-1, 2:-1] = whole
    return [whole.t().contiguous().t(), every_other[:, ::2], inside[1:-1, 2:-1]]


def check_strides():
    shape = (4, 3)
    for op in OPS:
        for index in range(3):
            mine = strided(shape)[index]
            assert not mine.is_contiguous()
            equal(horo.allreduce(mine, op=op), reduced(op, torch.float32, shape))
            equal(mine, strided(shape)[index])
            assert horo.allreduce_(mine, op=op) is mine
            equal(mine, reduced(op, torch.float32, shape))
            first, second = horo.grouped_allreduce([strided(shape)[index], torch.ones(2)], op=op)
            equal(first, reduced(op, torch.float32, shape))
            group = [strided(shape)[index], strided(shape, 1)[index]]
            assert horo.grouped_allreduce_(group, op=op)[1] is group[1]
            equal(group[1], reduced(op, torch.float32, shape, 1))


def check_a_row_that_is_repeated():
    mine = torch.tensor([[1.0, 2.0]]).expand(5, 2) * 1
    mine = mine[:1].expand(5, 2)
    equal(horo.allreduce(mine, op=horo.Sum), torch.tensor([[1.0, 2.0]]).repeat(5, 1) * horo.size())


def check_memory_around_a_view_stays():
    whole = torch.full((6, 6), float(horo.rank()))
    horo.allreduce_(whole[1:3, 2:5], op=horo.Max)
    wanted = torch.full((6, 6), float(horo.rank()))
    wanted[1:3, 2:5] = horo.size() - 1
    equal(whole, wanted)


def check_strides_of_moves():
    n, me = horo.size(), horo.rank()
    shape = (2 * n, 3)
    everybody = [part(rank, torch.float32, shape) for rank in range(n)]
    for index in range(3):
        mine = strided(shape)[index]
        equal(horo.allgather(mine), torch.cat(everybody))
        equal(horo.grouped_allgather([mine, mine])[1], torch.cat(everybody))
        wanted = torch.cat([one[2 * me : 2 * me + 2] for one in everybody])
        equal(horo.alltoall(mine), wanted)
        start, count = rows_of(me, 2 * n)
        wanted = reduced(horo.Sum, torch.float32, shape)[start : start + count]
        equal(horo.reducescatter(mine, op=horo.Sum), wanted)
        equal(horo.grouped_reducescatter([mine], op=horo.Sum)[0], wanted)
        for root in range(n):
            equal(horo.broadcast(mine, root), everybody[root])
            again = strided(shape)[index]
            assert horo.broadcast_(again, root) is again
            equal(again, everybody[root])


def check_gradients_of_strides():
    x = torch.ones(3, 2, requires_grad=True)
    weight = torch.arange(6.0).reshape(2, 3)
    (horo.allreduce(x.t(), op=horo.Sum, name="strided") * weight).sum().backward()
    equal(x.grad, horo.size() * weight.t().contiguous())


def turned(shape, dtype=torch.complex64, rank=None):
    rank = horo.rank() if rank is None else rank
    numbers = part(rank, torch.float64, shape) + 1j * part(rank, torch.float64, shape, 1)
    return numbers.to(dtype)


def check_complex():
    n = horo.size()
    for dtype in (torch.complex64, torch.complex128):
        for shape in ((), (5,), (3, 4), (0,)):
            everybody = torch.stack([turned(shape, dtype, rank) for rank in range(n)])
            mine = turned(shape, dtype)
            equal(horo.allreduce(mine, op=horo.Sum), everybody.sum(0))
            equal(mine, turned(shape, dtype))
            found = horo.allreduce(mine)
            assert found.dtype is dtype and torch.allclose(found, everybody.mean(0)), found
            assert horo.allreduce_(mine, op=horo.Sum) is mine
            equal(mine, everybody.sum(0))
            again = turned(shape, dtype)
            assert horo.broadcast_(again, n - 1) is again
            equal(again, turned(shape, dtype, n - 1))
        mine = turned((2 * n, 3), dtype)
        everybody = [turned((2 * n, 3), dtype, rank) for rank in range(n)]
        equal(horo.allgather(mine), torch.cat(everybody))
        equal(horo.alltoall(mine.t().contiguous().t())[:2], everybody[0][2 * horo.rank() :][:2])
        equal(horo.reducescatter(mine, op=horo.Sum), sum(everybody)[2 * horo.rank() :][:2])
        equal(horo.grouped_allreduce([mine, mine], op=horo.Sum)[1], sum(everybody))


def check_complex_views():
    """Conjugation is lazy in torch; the values that a program reads must be reduced."""
    mine = turned((3, 4))
    wanted = sum(turned((3, 4), rank=rank) for rank in range(horo.size()))
    equal(horo.allreduce(mine.conj(), op=horo.Sum), wanted.conj().resolve_conj())
    equal(horo.allreduce(mine.conj().imag, op=horo.Sum), -wanted.imag)
    equal(horo.allreduce(mine.t(), op=horo.Sum), wanted.t().contiguous())
    lazy = turned((3, 4)).conj()
    horo.allreduce_(lazy, op=horo.Sum)
    equal(lazy.resolve_conj(), wanted.conj().resolve_conj())


def check_contiguous_numbers_with_a_lazy_sign():
    """torch marks such a tensor and leaves its memory as it is."""
    mine = torch.full((2, 3), float(horo.rank() + 1))
    total, most = sum(range(1, horo.size() + 1)), horo.size()
    negative = torch._neg_view(mine.clone())
    assert negative.is_contiguous() and negative.is_neg()
    equal(horo.allreduce(negative, op=horo.Sum), torch.full((2, 3), -float(total)))
    equal(horo.allreduce(negative, op=horo.Min), torch.full((2, 3), -float(most)))
    assert horo.allreduce_(negative, op=horo.Max) is negative
    equal(negative.resolve_neg(), torch.full((2, 3), -1.0))



def check_complex_gradients():
    x = torch.ones(3, dtype=torch.complex64, requires_grad=True)
    horo.allreduce(x * 2j, op=horo.Sum, name="turned").imag.sum().backward()
    equal(x.grad, torch.full((3,), 2.0 * horo.size(), dtype=torch.complex64))


def check_unsupported_operations_of_complex_numbers():
    mine = turned((3,))
    for op in (horo.Min, horo.Max, horo.Product, horo.Adasum):
        for function in (horo.allreduce, horo.allreduce_):
            fails(ValueError, lambda f=function, op=op: f(mine, op=op), "complex64", "Sum")
    fails(ValueError, lambda: horo.grouped_allreduce([mine], op=horo.Max), "complex64")
    fails(ValueError, lambda: horo.reducescatter(mine, op=horo.Max), "complex64")
    for function in (horo.allgather, horo.alltoall, horo.reducescatter):
        fails(ValueError, lambda f=function: f(torch.tensor(1j)), "dimension")


def check_complex_parameters():
    for groups in (None, 1):
        weight = torch.nn.Parameter(torch.full((4, 2), 1 + 1j, dtype=torch.complex64))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        optimizer = horo.DistributedOptimizer(optimizer, [(f"turned.{groups}", weight)], groups=groups)
        for step in range(3):
            optimizer.zero_grad(set_to_none=step == 1)
            (weight * (horo.rank() + 1j)).real.sum().backward()
            optimizer.step()
        mean = (horo.size() - 1) / 2
        wanted = torch.full((4, 2), 1 + 1j - 3 * (mean - 1j), dtype=torch.complex64)
        assert torch.allclose(weight.detach(), wanted), weight


def check_another_default_device():
    """Programs for GPUs set one. The device "meta" stands for it; it keeps no values."""
    if not hasattr(torch, "set_default_device"):
        return  # torch before 2.0
    layer, table = torch.nn.Linear(3, 2), torch.nn.Embedding(4, 3, sparse=True)
    named = [*layer.named_parameters(), *table.named_parameters("table")]
    columns, words = torch.ones(3, 2).t(), torch.tensor([1])
    torch.set_default_device("meta")
    try:
        assert horo.broadcast_object({"a": horo.rank()}) == {"a": 0}
        assert horo.allgather_object(horo.rank()) == list(range(horo.size()))
        equal(horo.allreduce(columns, op=horo.Sum), columns.contiguous() * horo.size())
        optimizer = torch.optim.SGD([one for _, one in named], lr=0.1)
        optimizer = horo.DistributedOptimizer(optimizer, named)
        if horo.rank() == 0:
            layer(table(words)).sum().backward()
        optimizer.step()
        horo.broadcast_parameters(layer.state_dict(), root_rank=0)
        plain = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
        if horo.rank() == 0:
            plain.step()
        horo.broadcast_optimizer_state(plain, root_rank=0)
    finally:
        torch.set_default_device("cpu")
    equal(table.weight.grad.to_dense()[0], torch.zeros(3))
    assert len(plain.state) == 2 and plain.state[layer.bias]["momentum_buffer"].is_cpu
