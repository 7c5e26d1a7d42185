# SPDX-License-Identifier: Apache-2.0
"""Gradients in the arena: those that stay are not copied, and no other memory is touched."""

import gc
import os
import weakref

import torch

import horo.torch as horo
from horo.torch._memory import COUNTS

STEPS = 4
SHAPE = (300, 500)
NUMBER = SHAPE[0] * SHAPE[1]


class Tied(torch.nn.Module):
    """One parameter that is used twice."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(SHAPE))

    def forward(self, x):
        return (self.weight * x).sum() + (self.weight * 2).sum()


def wrapped(model, **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return horo.DistributedOptimizer(optimizer, model.named_parameters(), **options)


def wanted(passes=1):
    """The average over the ranks of the gradients r + 1 + 2."""
    return torch.full(SHAPE, passes * ((horo.size() + 1) / 2 + 2))


def backward(model, **options):
    model(torch.full(SHAPE, horo.rank() + 1.0)).backward(**options)


def direct_bytes(function):
    """Bytes that were reduced in place."""
    before = horo.counters()["direct_bytes"]
    function()
    return horo.counters()["direct_bytes"] - before


def steps(model, optimizer, count=STEPS, **zero):
    for _ in range(count):
        optimizer.zero_grad(**zero)
        backward(model)
        optimizer.synchronize()
        assert torch.equal(model.weight.grad, wanted()), model.weight.grad
        with optimizer.skip_synchronize():
            optimizer.step()


def shares_cores():
    """In this case the runtime itself copies ordinary memory into the arena."""
    return len(os.sched_getaffinity(0)) < horo.local_size()


def one_host():
    return horo.size() == horo.local_size()


def check_torch_counts_the_users_of_a_memory():
    """In all tested versions; otherwise many checks below would check nothing."""
    assert COUNTS


def check_gradients_that_stay_move_once():
    model = Tied()
    optimizer = wrapped(model)
    steps(model, optimizer, 2, set_to_none=False)
    place = model.weight.grad.data_ptr()
    moved = direct_bytes(lambda: steps(model, optimizer, set_to_none=False))
    assert model.weight.grad.data_ptr() == place  # torch adds there, and nothing is copied
    if one_host():
        assert moved >= STEPS * NUMBER * 4, moved


def check_gradients_made_anew_stay_where_they_are():
    model = Tied()
    optimizer = wrapped(model)
    moved = direct_bytes(lambda: steps(model, optimizer, set_to_none=True))
    assert moved == 0 or shares_cores()


def check_never():
    model = Tied()
    optimizer = wrapped(model, gradients_in_shared_memory=False)
    moved = direct_bytes(lambda: steps(model, optimizer, set_to_none=False))
    assert moved == 0 or shares_cores()


def check_always():
    for none in (True, False):
        model = Tied()
        optimizer = wrapped(model, gradients_in_shared_memory=True)
        moved = direct_bytes(lambda: steps(model, optimizer, set_to_none=none))
        assert not one_host() or moved >= STEPS * NUMBER * 4, moved


def check_an_old_gradient_keeps_its_values():
    for mode in (True, "auto", False):
        for view in (lambda grad: grad, lambda grad: grad.detach()[1:], lambda grad: grad.view(-1)):
            model = Tied()
            optimizer = wrapped(model, gradients_in_shared_memory=mode)
            steps(model, optimizer, set_to_none=True)
            kept = view(model.weight.grad)
            values = kept.clone()
            optimizer.zero_grad(set_to_none=True)
            model(torch.full(SHAPE, 100.0)).backward()
            optimizer.synchronize()
            assert torch.equal(kept, values), mode
            assert model.weight.grad.mean() == 102


def check_views_of_other_tensors_are_not_moved():
    model = Tied()
    optimizer = wrapped(model)
    flat = torch.zeros(2 * NUMBER)  # like a wrapper that keeps all gradients in one buffer
    model.weight.grad = flat[:NUMBER].view(SHAPE)
    for _ in range(STEPS):
        flat.zero_()
        backward(model)
        optimizer.synchronize()
        assert torch.equal(flat[:NUMBER].view(SHAPE), wanted())
        assert flat[NUMBER:].eq(0).all()


def check_an_alias_sees_the_gradient():
    """A tensor over the same memory still sees the gradient."""
    model = Tied()
    optimizer = wrapped(model)
    model.weight.grad = torch.zeros(SHAPE)
    alias = model.weight.grad.detach()
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=False)
        backward(model)
        optimizer.synchronize()
        assert torch.equal(alias, wanted())


def check_the_tensor_stays_the_same():
    model = Tied()
    optimizer = wrapped(model)
    model.weight.grad = kept = torch.zeros(SHAPE)
    steps(model, optimizer, set_to_none=False)
    assert model.weight.grad is kept and torch.equal(kept, wanted())


def check_an_earlier_reference_sees_the_reduced_gradient():
    """A gradient that moves stays the same tensor."""
    for mode in (True, "auto", False):
        model = Tied()
        taken = []
        accumulator = model.weight.expand_as(model.weight).grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda *_: taken.append(model.weight.grad))
        optimizer = wrapped(model, gradients_in_shared_memory=mode)
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=True)
            backward(model)
            optimizer.synchronize()
            first = taken.pop()
            assert first is model.weight.grad and torch.equal(first, wanted()), mode
            del first


def check_always_does_not_move_tensors_with_views():
    model = Tied()
    optimizer = wrapped(model, gradients_in_shared_memory=True)
    flat = torch.zeros(2 * NUMBER)
    for _ in range(STEPS):
        view = model.weight.grad = flat[:NUMBER].view(SHAPE)
        flat.zero_()
        backward(model)
        optimizer.synchronize()
        assert torch.equal(model.weight.grad, wanted())
        assert view._base is flat and view.data_ptr() == flat.data_ptr()
        assert flat[NUMBER:].eq(0).all()


def check_gradients_add_up():
    for mode in (True, "auto", False):
        model = Tied()
        optimizer = wrapped(model, gradients_in_shared_memory=mode, backward_passes_per_step=2)
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=False)
            backward(model)
            backward(model)
            optimizer.synchronize()
            assert torch.equal(model.weight.grad, wanted(2))


def check_dropped_while_reduced():
    for mode in (True, "auto", False):
        for compression in (horo.Compression.none, horo.Compression.fp16):
            model = Tied()
            optimizer = wrapped(model, gradients_in_shared_memory=mode, compression=compression)
            for _ in range(STEPS):
                backward(model)
                model.zero_grad(set_to_none=True)  # the model's own zero_grad() is not refused
                optimizer.synchronize()
                assert torch.equal(model.weight.grad, wanted())
                optimizer.zero_grad(set_to_none=True)


def check_replaced_while_reduced():
    for mode in (True, "auto", False):
        model = Tied()
        optimizer = wrapped(model, gradients_in_shared_memory=mode)
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=False)
            backward(model)
            mine = model.weight.grad = torch.full(SHAPE, 7.0)
            optimizer.synchronize()
            assert model.weight.grad is mine and torch.equal(mine, wanted())


def check_other_memory_while_reduced():
    """module.to() and unscaling by hand give the tensor other memory. The old memory stays allocated
    until it has been reduced."""
    for mode in (True, "auto", False):
        for groups in (None, 1):
            model = Tied()
            optimizer = wrapped(model, gradients_in_shared_memory=mode, groups=groups)
            for _ in range(STEPS):
                optimizer.zero_grad(set_to_none=False)
                horo.barrier()
                if horo.rank() == 0:
                    backward(model)
                    model.weight.grad.data = torch.full(SHAPE, 7.0)
                horo.barrier()
                fresh = [torch.zeros(SHAPE) for _ in range(4)]
                if horo.rank() != 0:
                    backward(model)
                optimizer.synchronize()
                assert torch.equal(model.weight.grad, wanted())
                assert not any(tensor.any() for tensor in fresh)
    mine = torch.ones(SHAPE)
    handle = 0
    if horo.rank() == 0:
        handle = horo.allreduce_async_(mine, name="other memory", op=horo.Sum)
        mine.data = torch.zeros(SHAPE)
    horo.barrier()
    handle = handle or horo.allreduce_async_(mine, name="other memory", op=horo.Sum)
    fresh = [torch.zeros(SHAPE) for _ in range(4)]
    horo.synchronize(handle)
    assert not any(tensor.any() for tensor in fresh)
    if horo.rank() != 0:
        assert torch.equal(mine, torch.full(SHAPE, float(horo.size())))


def check_graph_of_gradients():
    """With create_graph, gradients have a history, which stays usable."""
    for mode in (True, "auto"):
        weight = torch.nn.Parameter(torch.full(SHAPE, 2.0))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        optimizer = horo.DistributedOptimizer(
            optimizer, [("weight", weight)], gradients_in_shared_memory=mode
        )
        for _ in range(STEPS):
            weight.grad = None
            (weight**3).sum().backward(create_graph=True)
            optimizer.synchronize()
            assert weight.grad.requires_grad and weight.grad.detach().eq(12).all()
            (second,) = torch.autograd.grad(weight.grad.sum(), weight)
            assert second.eq(12).all()


def check_the_arena_is_freed():
    """Many optimizers, one after another, each with gradients of a tenth of the arena."""
    for _ in range(12):
        weight = torch.nn.Parameter(torch.ones(25 << 18))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        optimizer = horo.DistributedOptimizer(
            optimizer, [("big", weight)], gradients_in_shared_memory=True
        )
        weight.sum().backward()
        optimizer.step()
        del optimizer, weight


def check_a_dropped_optimizer_leaves_no_garbage():
    """Its memory in the arena does not have to wait for Python to look for cycles of references."""
    gc.disable()
    try:
        weight = torch.nn.Parameter(torch.ones(1000))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        optimizer = horo.DistributedOptimizer(
            optimizer, [("dropped", weight)], gradients_in_shared_memory=True
        )
        weight.sum().backward()
        optimizer.step()
        gone = weakref.ref(weight)
        del optimizer, weight
        assert gone() is None, gc.get_referrers(gone())
    finally:
        gc.enable()


def check_no_room():
    model = Tied()
    optimizer = wrapped(model)
    full = [horo.shared_empty((8 << 20,), torch.uint8)]
    try:
        while True:
            full.append(horo.shared_empty((8 << 20,), torch.uint8))
    except horo.HoroError:
        pass
    try:
        while True:
            full.append(horo.shared_empty((64 << 10,), torch.uint8))
    except horo.HoroError:
        pass
    steps(model, optimizer, set_to_none=False)
    try:
        wrapped(Tied(), gradients_in_shared_memory=True)
        raise AssertionError("there was room")
    except horo.HoroError as error:
        assert "arena" in str(error), error
