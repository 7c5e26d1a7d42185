# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: the job's training equals that of one process with the whole batch."""

import copy
import pickle
import warnings

import torch
import torch.nn.functional as F

import horo.torch as horo

STEPS = 3
PER_RANK = 4


class Branches(torch.nn.Module):
    """Two layers, and one that not every rank uses."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.second = torch.nn.Linear(8, 3)
        self.rare = torch.nn.Linear(8, 3)

    def forward(self, x, rare=False):
        x = torch.tanh(self.first(x))
        return self.second(x) + (self.rare(x) if rare else 0.0)


def model(seed=5):
    torch.manual_seed(seed)
    return Branches()


def batch(step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(PER_RANK, 6, generator=generator), torch.randint(
        0, 3, (PER_RANK,), generator=generator
    )


def sgd(network):
    return torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9)


def alone(steps=STEPS, rare_rank=None, clip=None, make=sgd):
    """Parameters after training in this process alone on the batches of all ranks."""
    network = model()
    optimizer = make(network)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(horo.size()):
            x, y = batch(step, rank)
            (F.cross_entropy(network(x, rank == rare_rank), y) / horo.size()).backward()
        if rare_rank is None:
            for parameter in network.rare.parameters():
                parameter.grad = torch.zeros_like(parameter)
        if clip:
            torch.nn.utils.clip_grad_norm_(network.parameters(), clip)
        optimizer.step()
    return network


def same(network, wanted, tolerance=1e-5):
    """Parameters must be close to the wanted ones, and equal bit by bit on all ranks."""
    for (name, one), other in zip(network.named_parameters(), wanted.parameters()):
        assert torch.allclose(one, other, atol=tolerance, rtol=tolerance), name
    mine = torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()])
    everywhere = horo.allgather(mine.reshape(1, -1))
    assert (everywhere == everywhere[0]).all()


def train(network, optimizer, steps=STEPS, rare_rank=None, **zero):
    for step in range(steps):
        optimizer.zero_grad(**zero)
        x, y = batch(step, horo.rank())
        F.cross_entropy(network(x, horo.rank() == rare_rank), y).backward()
        optimizer.step()


def wrapped(network, make=sgd, **options):
    options.setdefault("named_parameters", network.named_parameters())
    return horo.DistributedOptimizer(make(network), **options)


def fails(kind, function, word):
    try:
        function()
    except kind as error:
        assert word in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}")


def check_equals_one_process():
    network = model()
    optimizer = wrapped(network)
    assert isinstance(optimizer, torch.optim.SGD) and type(optimizer).__name__ == "SGD"
    train(network, optimizer)
    same(network, alone())


def check_copies_say_that_they_reduce_nothing():
    for op in (horo.Average, horo.Adasum):
        network = model()
        optimizer = wrapped(network, op=op)
        train(network, optimizer, 1)
        for copied in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
            assert type(copied) is type(optimizer)
            assert copied.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]
            fails(RuntimeError, copied.step, "copy of a DistributedOptimizer")
            assert not hasattr(copied, "else")
        other, copied = copy.deepcopy((network, optimizer))
        again = wrapped(other, op=op)
        again.load_state_dict(copied.state_dict())
        for each, its in ((network, optimizer), (other, again)):
            train(each, its, 2)
        same(other, network)


def check_other_optimizers():
    for make in (
        lambda network: torch.optim.Adam(network.parameters(), lr=0.01),
        lambda network: torch.optim.AdamW(network.parameters(), lr=0.01),
        lambda network: torch.optim.Adagrad(network.parameters(), lr=0.01),
    ):
        network = model()
        train(network, wrapped(network, make))
        same(network, alone(make=make), 1e-4)


def check_without_names():
    network = model()
    train(network, wrapped(network, named_parameters=None))
    same(network, alone())


def check_shared_memory():
    for mode in (True, "auto"):
        for zero in ({}, {"set_to_none": False}, {"set_to_none": True}):
            network = model()
            train(network, wrapped(network, gradients_in_shared_memory=mode), **zero)
            same(network, alone())


def check_shared_memory_is_reduced_in_place():
    network = torch.nn.Linear(500, 300)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    optimizer = horo.DistributedOptimizer(
        optimizer, network.named_parameters(), gradients_in_shared_memory=True
    )
    before = horo.counters()["direct_bytes"]
    for _ in range(STEPS):
        optimizer.zero_grad()
        network(torch.ones(1, 500)).sum().backward()
        optimizer.step()
    least = STEPS * network.weight.numel() * 4 if horo.cross_size() == 1 else 0
    assert horo.counters()["direct_bytes"] - before >= least


def check_groups():
    for groups in (1, 2, 100):
        network = model()
        train(network, wrapped(network, groups=groups))
        same(network, alone())
    network = model()
    lists = [list(network.first.parameters()), [network.second.weight, network.rare.bias]]
    train(network, wrapped(network, groups=lists), rare_rank=0)
    same(network, alone(rare_rank=0))


def check_compression():
    for compression in (horo.Compression.fp16, horo.Compression.bf16):
        for groups in (None, 2):
            network = model()
            train(network, wrapped(network, compression=compression, groups=groups))
            same(network, alone(), 2e-2)


def check_predivide_and_sum():
    network = model()
    train(network, wrapped(network, gradient_predivide_factor=4.0))
    same(network, alone())
    network = model()

    def slower(net):
        return torch.optim.SGD(net.parameters(), lr=0.2 / horo.size(), momentum=0.9)

    train(network, wrapped(network, slower, op=horo.Sum))
    same(network, alone(), 1e-4)


def check_groups_with_all_other_options():
    network = model()
    train(network, wrapped(network, groups=2, gradient_predivide_factor=4.0), rare_rank=0)
    same(network, alone(rare_rank=0))
    for dense in (False, True):
        torch.manual_seed(3)
        table = torch.nn.Embedding(6, 3, sparse=True)
        before = table.weight.detach().clone()
        optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
        optimizer = horo.DistributedOptimizer(
            optimizer, table.named_parameters(), groups=1, sparse_as_dense=dense
        )
        table(torch.tensor([5])).sum().backward()
        optimizer.step()
        assert torch.allclose((before - table.weight.detach())[5], torch.ones(3))


def check_missing_gradients():
    network = model()
    train(network, wrapped(network), rare_rank=horo.size() - 1)
    same(network, alone(rare_rank=horo.size() - 1))


def check_passes_add_up():
    network = model()
    optimizer = wrapped(network, backward_passes_per_step=2)
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batch(step, horo.rank())
        for half in (slice(0, PER_RANK // 2), slice(PER_RANK // 2, None)):
            (F.cross_entropy(network(x[half]), y[half]) / 2).backward()
        optimizer.step()
    same(network, alone())
    optimizer.zero_grad()
    for _ in range(2):
        network(batch(0, 0)[0]).sum().backward()
    again = network(batch(0, 0)[0]).sum()
    fails(AssertionError, again.backward, "backward_passes_per_step")
    optimizer.synchronize()
    optimizer.set_backward_passes_per_step(1)
    train(network, optimizer, steps=1)
    fails(ValueError, lambda: optimizer.set_backward_passes_per_step(0), "0")


def check_clipping():
    network = model()
    optimizer = wrapped(network)
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batch(step, horo.rank())
        F.cross_entropy(network(x), y).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
    same(network, alone(clip=0.1))


def check_synchronize_twice_warns():
    network = model()
    optimizer = wrapped(network)
    network(batch(0, horo.rank())[0]).sum().backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step()
        network(batch(0, horo.rank())[0]).sum().backward()
        optimizer.synchronize()
        optimizer.step()
    told = [warning for warning in seen if "skip_synchronize" in str(warning.message)]
    assert len(told) == 1, told


def check_options_without_effect_warn_once_per_job():
    network = model()
    base = torch.optim.SGD(network.parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        horo.DistributedOptimizer(base, network.named_parameters(), op=horo.Adasum, groups=2)
    told = [str(warning.message) for warning in seen]
    assert len(told) == (horo.rank() == 0), told
    assert not told or "no effect with op=Adasum" in told[0]


def check_parameter_names():
    """Programs for Horovod look up a parameter's name in `_parameter_names`."""
    network = model()
    optimizer = wrapped(network)
    names = {name: parameter for name, parameter in network.named_parameters()}
    assert {name: one for one, name in optimizer._parameter_names.items()} == names
    later = torch.nn.Parameter(torch.zeros(2))
    optimizer.add_param_group({"params": [later]})
    assert "noname" in optimizer._parameter_names[later]
    base = torch.optim.SGD(network.parameters(), lr=0.1)
    adasum = horo.DistributedOptimizer(base, network.named_parameters(), op=horo.Adasum)
    assert {name: one for one, name in adasum._parameter_names.items()} == names


def check_zero_grad_while_reducing():
    network = model()
    optimizer = wrapped(network)
    network(batch(0, horo.rank())[0]).sum().backward()
    fails(AssertionError, optimizer.zero_grad, "step()")
    optimizer.step()
    optimizer.zero_grad()


def check_closure():
    network = model()
    optimizer = wrapped(network)
    for step in range(STEPS):
        x, y = batch(step, horo.rank())

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(network(x), y)
            loss.backward()
            return loss

        assert optimizer.step(closure).item() > 0
    same(network, alone())


def check_schedulers_and_state():
    network = model()
    original = sgd(network)
    torch.optim.lr_scheduler.StepLR(original, 1)  # stores a wrapped step in the original
    optimizer = horo.DistributedOptimizer(original, network.named_parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=1.0)
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batch(step, horo.rank())
        F.cross_entropy(network(x), y).backward()
        optimizer.step()
        scheduler.step()
    same(network, alone())
    saved = copy.deepcopy(optimizer.state_dict())
    network(batch(0, horo.rank())[0]).sum().backward()
    optimizer.load_state_dict(saved)
    optimizer.zero_grad()
    train(network, optimizer, steps=1)


def check_frozen_parameters():
    network = model()
    for parameter in network.rare.parameters():
        parameter.requires_grad_(False)
    optimizer = wrapped(network)
    train(network, optimizer)
    same(network, alone())


def check_parameters_that_are_frozen_later():
    """They keep their values; with gradients of zeros, momentum and weight decay would change them."""

    def sgd_that_decays(network):
        return torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9, weight_decay=0.1)

    def freeze(network):
        for parameter in network.first.parameters():
            parameter.requires_grad_(False)

    for options in ({}, {"groups": 1}, {"gradients_in_shared_memory": True}):
        network, other = model(), model()
        optimizer, its = wrapped(network, sgd_that_decays, **options), sgd_that_decays(other)
        for step in range(4):
            if step == 2:
                freeze(network)
                freeze(other)
            train(network, optimizer, 1, set_to_none=True)
            its.zero_grad(set_to_none=True)
            for rank in range(horo.size()):
                x, y = batch(0, rank)
                (F.cross_entropy(other(x), y) / horo.size()).backward()
            for parameter in other.rare.parameters():
                parameter.grad = torch.zeros_like(parameter)
            its.step()
        same(network, other)
        assert network.first.weight.grad is None


def check_parameters_that_come_later():
    """Parameters that are unfrozen or added later are reduced like the others."""
    for share in ("auto", True):
        network = model()
        parts = [network.first, network.second, network.rare]
        for parameter in network.first.parameters():
            parameter.requires_grad_(False)
        optimizer = torch.optim.SGD([*parts[0].parameters(), *parts[1].parameters()], lr=0.2)
        named = [("a" + name, parameter) for name, parameter in parts[0].named_parameters()]
        named += [("b" + name, parameter) for name, parameter in parts[1].named_parameters()]
        optimizer = horo.DistributedOptimizer(
            optimizer, named, gradients_in_shared_memory=share
        )
        for step in range(6):
            if step == 2:
                for parameter in network.first.parameters():
                    parameter.requires_grad_(True)
            if step == 4:
                optimizer.add_param_group({"params": list(network.rare.parameters())})
            optimizer.zero_grad()
            x, y = batch(step, horo.rank())
            F.cross_entropy(network(x, True), y).backward()
            optimizer.step()
            own = torch.cat([one.detach().reshape(-1) for one in network.parameters()])
            assert torch.equal(horo.broadcast(own, 0), own), step
    adasum = model()
    optimizer = torch.optim.SGD(adasum.first.parameters(), lr=0.2)
    optimizer = horo.DistributedOptimizer(optimizer, op=horo.Adasum)
    optimizer.add_param_group({"params": [*adasum.second.parameters(), *adasum.rare.parameters()]})
    for step in range(2):
        optimizer.zero_grad()
        x, y = batch(step, horo.rank())
        F.cross_entropy(adasum(x, True), y).backward()
        optimizer.step()
    own = torch.cat([one.detach().reshape(-1) for one in adasum.parameters()])
    assert torch.equal(horo.broadcast(own, 0), own)


def check_hooks_of_steps_run_once():
    for op in (horo.Average, horo.Adasum):
        network = model()
        optimizer = wrapped(network, op=op)
        if not hasattr(optimizer, "register_step_pre_hook"):  # torch before 2.0
            return
        seen = []
        optimizer.register_step_pre_hook(lambda *_: seen.append("pre"))
        optimizer.register_step_post_hook(lambda *_: seen.append("post"))
        train(network, optimizer, steps=2)
        assert seen == ["pre", "post"] * 2, seen


def check_closure_that_computes_nothing():
    """Gradients from before the step are reduced, and only once."""
    network = torch.nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    optimizer = horo.DistributedOptimizer(optimizer, network.named_parameters(), op=horo.Sum)
    loss = network(torch.ones(1, 2)).sum()
    loss.backward()
    optimizer.step(loss.detach)
    assert network.weight.grad.tolist() == [[horo.size()] * 2], network.weight.grad


def check_forgotten_optimizer_is_silent():
    network = model()
    optimizer = wrapped(network)
    del optimizer
    train(network, wrapped(network))
    same(network, alone())


def check_two_optimizers_without_names():
    networks = [model(1), model(2)]
    optimizers = [wrapped(network, named_parameters=None) for network in networks]
    for network in networks:
        network(batch(0, horo.rank())[0]).sum().backward()
    for optimizer in optimizers:
        optimizer.step()


def check_sparse_gradients():
    for dense in (False, True):
        torch.manual_seed(3)
        table = torch.nn.Embedding(10, 3, sparse=True)
        before = table.weight.detach().clone()
        optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
        optimizer = horo.DistributedOptimizer(
            optimizer, table.named_parameters(), sparse_as_dense=dense
        )
        for _ in range(2):
            optimizer.zero_grad()
            table(torch.tensor([horo.rank(), 9])).sum().backward()
            optimizer.step()
        change = before - table.weight.detach()
        assert torch.allclose(change[9], torch.full((3,), 2.0))
        for rank in range(horo.size()):
            assert torch.allclose(change[rank], torch.full((3,), 2.0 / horo.size())), change


def check_channels_last():
    torch.manual_seed(3)
    network = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    optimizer = horo.DistributedOptimizer(optimizer, network.named_parameters())
    images = torch.ones(1, 3, 5, 5).to(memory_format=torch.channels_last) * (horo.rank() + 1)
    network(images).sum().backward()
    mine = network.weight.grad.clone() / (horo.rank() + 1)
    optimizer.synchronize()
    assert torch.allclose(network.weight.grad, mine * (horo.size() + 1) / 2)


def check_wrong_arguments():
    network = model()
    named = list(network.named_parameters())
    for word, options in (
        ("lacks", {"named_parameters": named[1:]}),
        ("two parameters", {"named_parameters": named + [(named[0][0], named[1][1])]}),
        ("tuples", {"named_parameters": list(network.parameters())}),
        ("backward_passes_per_step", {"backward_passes_per_step": 0}),
        ("Average", {"gradient_predivide_factor": 2.0, "op": horo.Sum}),
        ("twice", {"groups": [[network.first.weight], [network.first.weight]]}),
        ("not a parameter", {"groups": [[1]]}),
        ("groups", {"groups": "two"}),
        ("groups", {"groups": -1}),
        ("gradients_in_shared_memory", {"gradients_in_shared_memory": "maybe"}),
    ):
        fails(ValueError, lambda options=options: wrapped(network, **options), word)
    for op in (horo.Average, horo.Adasum):
        fails(ValueError, lambda op=op: horo.DistributedOptimizer(wrapped(network, op=op)), "already")
