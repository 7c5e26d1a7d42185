# SPDX-License-Identifier: Apache-2.0
"""horo.torch: process sets through every function, their gradients, and the optimizer; join."""

import torch
import torch.nn.functional as F

from expect import fails
import horo.torch as horo

PER_RANK = 4


class Halves:
    """Two sets for one block: the last rank, and all others. Yields the set of this rank."""

    def __enter__(self):
        last = horo.size() - 1
        self.sets = [horo.add_process_set(range(last)), horo.add_process_set([last])]
        return next(process_set for process_set in self.sets if process_set.included())

    def __exit__(self, kind, *_):
        for process_set in self.sets if kind is None else []:
            assert horo.remove_process_set(process_set)


def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


def batch(step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(PER_RANK, 6, generator=generator), torch.randint(
        0, 3, (PER_RANK,), generator=generator
    )


def alone(steps, ranks_of, divisor):
    """Trains in this process on the batches of `ranks_of(step)`, like the job."""
    network = model()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in ranks_of(step):
            x, y = batch(step, rank)
            (F.cross_entropy(network(x), y) / divisor).backward()
        optimizer.step()
    return network


def train(network, optimizer, steps, first=0):
    for step in range(first, first + steps):
        optimizer.zero_grad()
        x, y = batch(step, horo.rank())
        F.cross_entropy(network(x), y).backward()
        optimizer.step()


def close(one, other):
    for mine, wanted in zip(one.parameters(), other.parameters()):
        assert torch.allclose(mine, wanted, atol=1e-5, rtol=1e-5), (mine, wanted)


def distributed(network, **options):
    return horo.DistributedOptimizer(
        torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9),
        network.named_parameters(),
        **options,
    )


def check_every_collective_by_the_sets_ranks():
    with Halves() as own:
        n, me, ranks = own.size(), own.rank(), own.ranks
        there = {"name": "same", "process_set": own}
        mine = torch.full((n, 2), float(horo.rank()))
        mean = torch.full((n, 2), sum(ranks) / n)
        assert torch.allclose(horo.allreduce(mine, **there), mean)
        assert torch.allclose(horo.allreduce_(mine.clone(), **there), mean)
        assert torch.allclose(horo.synchronize(horo.allreduce_async(mine, **there)), mean)
        twice = torch.cat([mine, mine])
        assert torch.allclose(horo.reducescatter(twice, **there), torch.cat([mean, mean])[:2])
        for found in horo.grouped_allreduce([mine, mine], **there):
            assert torch.allclose(found, mean)
        for found in horo.grouped_allreduce_([mine.clone()], **there):
            assert torch.allclose(found, mean)
        for found in horo.grouped_reducescatter([mine, mine], **there):
            assert torch.allclose(found, mean[:1])
        assert horo.allgather(mine, **there)[::n, 0].tolist() == ranks
        for found in horo.grouped_allgather([mine, mine], **there):
            assert found[::n, 0].tolist() == ranks
        found, received = horo.alltoall(mine, [1] * n, **there)
        assert found[:, 0].tolist() == ranks and received.tolist() == [1] * n
        for root in ranks:
            assert (horo.broadcast(mine, root, **there) == root).all()
            assert (horo.broadcast_(mine.clone(), root, **there) == root).all()
            assert horo.broadcast_object([root, horo.rank()], root, **there) == [root, root]
        assert horo.allgather_object({me: horo.rank()}, **there) == [
            {i: rank} for i, rank in enumerate(ranks)
        ]
        sparse = torch.sparse_coo_tensor([[me]], [1.0 + horo.rank()], (n,))
        total = horo.sparse_allreduce_async(sparse, "sparse", horo.Average, own)()
        assert torch.allclose(total.to_dense(), torch.tensor([(1.0 + r) / n for r in ranks]))
        horo.barrier(own)


def gradient(function, tensor):
    x = tensor.clone().requires_grad_()
    result = function(x)
    results = result if isinstance(result, list) else [result]
    # Each rank's loss multiplies its result by the rank's number.
    sum((part * (1.0 + horo.rank())).sum() for part in results).backward()
    return x.grad


def check_gradients_stay_in_the_set():
    with Halves() as own:
        n, ranks = own.size(), own.ranks
        x = torch.ones(n, 3)
        mean = sum(1.0 + rank for rank in ranks) / n
        cases = [
            (lambda t: horo.allreduce(t, process_set=own), mean),
            (lambda t: horo.allreduce(t, op=horo.Sum, process_set=own), mean * n),
            (lambda t: horo.grouped_allreduce([t], process_set=own), mean),
            (lambda t: horo.allgather(t, process_set=own), mean),
            (lambda t: horo.grouped_allgather([t], process_set=own), mean),
            (
                lambda t: horo.broadcast(t, ranks[-1], process_set=own),
                mean if horo.rank() == ranks[-1] else 0.0,
            ),
        ]
        for function, wanted in cases:
            assert torch.allclose(gradient(function, x), torch.full_like(x, wanted))
        rows = torch.tensor([1.0 + rank for rank in ranks]).reshape(n, 1).expand(n, 3)
        for function, scale in (
            (lambda t: horo.reducescatter(t, process_set=own), 1.0),
            (lambda t: horo.reducescatter(t, op=horo.Sum, process_set=own), float(n)),
            (lambda t: horo.grouped_reducescatter([t], process_set=own), 1.0),
            (lambda t: horo.alltoall(t, process_set=own), 1.0),
        ):
            assert torch.allclose(gradient(function, x), rows * scale)


def check_parameters_and_state_of_a_set():
    with Halves() as own:
        root = own.ranks[-1]
        network = torch.nn.Linear(2, 1)
        with torch.no_grad():
            network.weight.fill_(float(horo.rank()))
        horo.broadcast_parameters(network.state_dict(), root, process_set=own)
        assert (network.weight == root).all()
        optimizer = torch.optim.SGD(network.parameters(), lr=1.0 + horo.rank(), momentum=0.5)
        horo.broadcast_optimizer_state(optimizer, root, process_set=own)
        assert optimizer.param_groups[0]["lr"] == 1.0 + root


def check_optimizers_of_two_sets():
    """Each set trains by itself; the last rank is a set of one."""
    for options in ({}, {"groups": 2}, {"compression": horo.Compression.fp16, "groups": 1}):
        with Halves() as own:
            network = model()
            train(network, distributed(network, process_set=own, **options), 3)
            if "compression" not in options:
                close(network, alone(3, lambda _: own.ranks, own.size()))
            mine = torch.cat([part.detach().reshape(-1) for part in network.parameters()])
            everybody = horo.allgather(mine.reshape(1, -1))
            assert (everybody[own.ranks] == mine).all()
            assert horo.size() == 1 or not torch.equal(everybody[0], everybody[-1])


def check_optimizers_without_names():
    """A rank in one more set has made one more optimizer; the names of the others do not change."""

    def unnamed(network, **options):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        return horo.DistributedOptimizer(optimizer, **options)

    with Halves() as own:
        if horo.rank() == horo.size() - 1:
            unnamed(model(), process_set=own)
        network = model()
        optimizer = unnamed(network)
        network(batch(0, horo.rank())[0]).sum().backward()
        optimizer.step()


def check_optimizer_outside_its_set():
    """A rank that is not in the set trains alone."""
    process_set = horo.add_process_set([0])
    network = model()
    train(network, distributed(network, process_set=process_set), 2)
    close(network, alone(2, lambda _: [horo.rank()], 1))
    horo.remove_process_set(process_set)
    fails(ValueError, lambda: distributed(model(), process_set=process_set), "does not exist")


def check_overlapping_optimizers():
    """One part of a model is shared by all ranks, the other by a set."""
    with Halves() as own:
        shared, private = model(), model()
        first = distributed(shared)
        second = distributed(private, process_set=own)
        for step in range(3):
            first.zero_grad()
            second.zero_grad()
            x, y = batch(step, horo.rank())
            (F.cross_entropy(shared(x), y) + F.cross_entropy(private(x), y)).backward()
            second.step()
            first.step()
        close(shared, alone(3, lambda _: range(horo.size()), horo.size()))
        close(private, alone(3, lambda _: own.ranks, own.size()))


def check_join_with_uneven_batches():
    """Rank r has r + 1 batches; its missing gradients count as zeros."""
    n = horo.size()
    for options in ({}, {"groups": 2}, {"gradients_in_shared_memory": True}):
        network = model()
        optimizer = distributed(network, **options)
        train(network, optimizer, horo.rank() + 1)
        last = horo.join()
        assert last == n - 1
        horo.broadcast_parameters(network.state_dict(), root_rank=last)
        horo.broadcast_optimizer_state(optimizer, root_rank=last)
        close(network, alone(n, lambda step: range(step, n), n))
        # All continue together.
        assert horo.allreduce(torch.ones(1), op=horo.Sum).item() == n


def check_join_before_the_first_step():
    """Rank r has r batches in the first epoch, so that rank 0 has none; then all have two."""
    n = horo.size()
    network = model()
    optimizer = distributed(network)
    train(network, optimizer, horo.rank())
    last = horo.join()
    horo.broadcast_parameters(network.state_dict(), root_rank=last)
    horo.broadcast_optimizer_state(optimizer, root_rank=last)
    train(network, optimizer, 2, first=n - 1)
    close(network, alone(n + 1, lambda step: range(0 if step >= n - 1 else step + 1, n), n))


def check_join_of_a_set_with_its_optimizer():
    with Halves() as own:
        network = model()
        train(network, distributed(network, process_set=own), own.rank() + 1)
        assert horo.join(process_set=own) == own.ranks[-1]
        horo.broadcast_parameters(network.state_dict(), own.ranks[-1], process_set=own)
        n = own.size()
        # Each rank steps on its own batch, like a job of the set's ranks.
        close(network, alone(n, lambda step: own.ranks[step:], n))
    assert horo.join(-1) in range(horo.size())


def check_groups_that_differ():
    if horo.cross_size() == 1:  # Between hosts, groups are local to a host and are not compared.
        parts = [torch.ones(2)] * (2 if horo.rank() else 3)
        fails(horo.MismatchError, lambda: horo.grouped_allreduce(parts, name="differ"), "the group")
    found = horo.grouped_allreduce([torch.ones(2)] * 3, name="equal", op=horo.Sum)
    assert all((part == horo.size()).all() for part in found)


def check_errors():
    one = torch.ones(1)
    fails(ValueError, lambda: horo.allreduce(one, process_set=3), "3", "add_process_set")
    process_set = horo.add_process_set([0])
    if horo.rank():
        words = (f"rank {horo.rank()} is not in process set {process_set.process_set_id}", "[0]")
        arguments = {"process_set": process_set}
        fails(ValueError, lambda: horo.allreduce(one, **arguments), *words)
        fails(ValueError, lambda: horo.allreduce_(one, **arguments), *words)
        fails(ValueError, lambda: horo.grouped_allreduce([one], **arguments), *words)
        fails(ValueError, lambda: horo.broadcast_object(1, **arguments), *words)
        fails(ValueError, lambda: horo.allgather_object(1, **arguments), *words)
        fails(ValueError, lambda: horo.broadcast_parameters({"a": one}, 0, **arguments), *words)
        fails(ValueError, lambda: horo.barrier(process_set), *words)
    horo.remove_process_set(process_set)
    fails(ValueError, lambda: horo.allreduce(one, process_set=process_set), "does not exist")
    assert horo.allreduce(one, op=horo.Sum).item() == horo.size()
