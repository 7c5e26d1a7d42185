# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer together with torch.compile, automatic mixed precision and gradients that add up
by hand, and compared with DistributedDataParallel."""

import copy
import os

import torch
import torch.distributed
import torch.nn.functional as F

import horo.torch as horo

STEPS = 4


def network():
    torch.manual_seed(11)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16), torch.nn.Tanh(),
        torch.nn.Linear(16, 3),
    )


def batch(step, rank, count=8):
    generator = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randn(count, 6, generator=generator)
    return x, torch.randint(0, 3, (count,), generator=generator)


def wrapped(model, **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return horo.DistributedOptimizer(optimizer, model.named_parameters(), **options)


def train(model, optimizer, steps=STEPS, **zero):
    for step in range(steps):
        x, y = batch(step, horo.rank())
        optimizer.zero_grad(**zero)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def alone(make=None):
    """The result of one process with the batches of all ranks."""
    model = network()
    optimizer = make and make(model.parameters())
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(horo.size()):
            x, y = batch(step, rank)
            (F.cross_entropy(model(x), y) / horo.size()).backward()
        optimizer.step()
    return model


def values(model):
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def close(model, wanted, tolerance=1e-6):
    found = values(model)
    assert torch.allclose(found, values(wanted), atol=tolerance, rtol=tolerance)
    everywhere = horo.allgather(found.reshape(1, -1))
    assert (everywhere == everywhere[0]).all()


def side_by_side(make):
    theirs, wanted = network(), alone(make)
    train(torch.nn.parallel.DistributedDataParallel(theirs), make(theirs.parameters()))
    close(theirs, wanted)
    for mode, none in (("auto", True), ("auto", False), (True, True), (True, False), (False, True)):
        ours = network()
        optimizer = horo.DistributedOptimizer(
            make(ours.parameters()), ours.named_parameters(), gradients_in_shared_memory=mode
        )
        train(ours, optimizer, set_to_none=none)
        close(ours, wanted)
        difference = (values(ours) - values(theirs)).abs().max()
        assert difference <= 1e-6, (mode, none, difference)


def check_distributed_data_parallel_side_by_side():
    """Both give the result of one process, up to the rounding of another order of sums."""
    assert "MASTER_ADDR" in os.environ and torch.distributed.is_available()
    torch.distributed.init_process_group("gloo")
    try:
        side_by_side(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9))
        side_by_side(lambda parameters: torch.optim.AdamW(parameters, lr=0.01))
    finally:
        torch.distributed.destroy_process_group()


def check_compiled():
    if not hasattr(torch, "compile"):
        return
    for mode in ("auto", True):
        model = network()
        optimizer = wrapped(model, gradients_in_shared_memory=mode)
        # Inductor needs a compiler; this backend does not.
        train(torch.compile(model, backend="aot_eager"), optimizer)
        close(model, alone())


def check_collective_beside_a_compiled_function():
    if not hasattr(torch, "compile"):
        return

    def scaled(x):
        return horo.allreduce(torch.sin(x) * 2, op=horo.Sum, name="compiled") + 1

    compiled = torch.compile(scaled, backend="aot_eager")
    for step in range(3):
        x = torch.full((5,), float(horo.rank() + step), requires_grad=True)
        found = compiled(x)
        found.sum().backward()
        wanted = sum(2 * torch.sin(torch.tensor(float(r + step))) for r in range(horo.size())) + 1
        assert torch.allclose(found, wanted.expand(5)), found
        assert torch.allclose(x.grad, horo.size() * 2 * torch.cos(x.detach())), x.grad


def check_autocast():
    model = network()
    optimizer = wrapped(model)
    for step in range(STEPS):
        x, y = batch(step, horo.rank())
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()
    close(model, alone(), 2e-2)


def scaler():
    """A gradient scaler for the CPU; older versions of torch have none."""
    make = getattr(getattr(torch, "amp", None), "GradScaler", None)
    return make and make("cpu", init_scale=1024.0, growth_interval=2)


def check_gradient_scaler():
    scale = scaler()
    if scale is None:
        return
    model = network()
    optimizer = wrapped(model)
    for step in range(STEPS):
        x, y = batch(step, horo.rank())
        optimizer.zero_grad()
        scale.scale(F.cross_entropy(model(x), y)).backward()
        optimizer.synchronize()  # before the scaler reads the gradients
        scale.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scale.step(optimizer)
        scale.update()
    close(model, alone(), 1e-5)


def check_gradient_scaler_skips_a_step_everywhere():
    """A gradient that overflows on one rank is infinite on all after the sum, so no rank steps."""
    scale = scaler()
    if scale is None:
        return
    model = network()
    optimizer = wrapped(model)
    before = values(model)
    x, y = batch(0, horo.rank())
    loss = F.cross_entropy(model(x), y)
    if horo.rank() == horo.size() - 1:
        loss = loss * float("inf")
    scale.scale(loss).backward()
    optimizer.synchronize()
    with optimizer.skip_synchronize():
        scale.step(optimizer)
    scale.update()
    assert torch.equal(values(model), before) and scale.get_scale() == 512.0


def check_gradients_that_add_up_by_hand():
    """Several backwards per step add up, and only the last one is reduced."""
    model = network()
    optimizer = wrapped(model, backward_passes_per_step=4)
    for step in range(STEPS):
        x, y = batch(step, horo.rank())
        optimizer.zero_grad()
        for part in range(4):
            rows = slice(2 * part, 2 * part + 2)
            (F.cross_entropy(model(x[rows]), y[rows]) / 4).backward()
        optimizer.step()
    close(model, alone())


def check_a_copied_model_trains_alone():
    """A deep copy, for example for an average of the weights, has none of the hooks."""
    model = network()
    optimizer = wrapped(model)
    train(model, optimizer)
    copied = copy.deepcopy(model)
    if horo.rank() == 0:
        copied(torch.ones(1, 6)).sum().backward()
    train(model, optimizer, 1)
