# SPDX-License-Identifier: Apache-2.0
"""One rank's script differs from the others': all ranks get an error that says so, or none is needed,
and the job continues."""

import itertools
import os
import signal
import time

import torch
from expect import fails

import horo.numpy as other
import horo.torch as horo

numbers = itertools.count()


def model(*widths):
    torch.manual_seed(7)
    layers = [torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:])]
    return torch.nn.Sequential(*layers)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def wrapped(network, make=sgd, **options):
    """Uses new names each time, because tensors that only some ranks have submitted stay in flight."""
    number = next(numbers)
    named = [(f"{number}: {name}", one) for name, one in network.named_parameters()]
    return horo.DistributedOptimizer(make(network.parameters()), named, **options)


def at_last():
    return horo.rank() == horo.size() - 1


def others():
    ranks = [str(rank) for rank in range(horo.size() - 1)]
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(ranks)


def alike(network):
    mine = torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()])
    everywhere = horo.allgather(mine.reshape(1, -1))
    assert (everywhere == everywhere[0]).all()


def goes_on():
    found = horo.allreduce(torch.ones(3), op=horo.Sum, name="goes_on")
    assert torch.equal(found, torch.full((3,), float(horo.size())))


def step_fails(network, *words, **options):
    optimizer = wrapped(network, **options)
    network(torch.ones(2, network[0].in_features)).sum().backward()
    fails(horo.MismatchError, optimizer.step, *words)
    fails(horo.MismatchError, optimizer.step, *words)  # again, at each call


def check_an_additional_layer_on_one_rank():
    network = model(3, 4, 2, 2) if at_last() else model(3, 4, 2)
    missing = f"2.weight' is missing on {others()}; float32 [2, 2] on rank {horo.size() - 1}"
    step_fails(network, "the ranks' models differ", missing, "1 more")
    step_fails(network, "the ranks' models differ", missing, op=horo.Adasum)
    fails(
        horo.MismatchError, lambda: horo.broadcast_parameters(network.state_dict(), 0), missing
    )
    goes_on()


def check_a_layer_of_another_width_on_one_rank():
    network = model(3, 5, 2) if at_last() else model(3, 4, 2)
    words = ("0.weight'", f"[4, 3] on {others()}", f"[5, 3] on rank {horo.size() - 1}")
    step_fails(network, *words)
    fails(horo.MismatchError, lambda: horo.broadcast_parameters(network.named_parameters(), 0), *words)
    goes_on()


def check_another_dtype_on_one_rank():
    network = model(3, 2)
    network = network.double() if at_last() else network
    optimizer = wrapped(network)
    network(torch.ones(1, 3, dtype=network[0].weight.dtype)).sum().backward()
    fails(horo.MismatchError, optimizer.step, "float32", "float64", "0.weight'")
    goes_on()


def check_frozen_on_one_rank():
    network = model(3, 4, 2)
    network[0].weight.requires_grad_(not at_last())
    step_fails(network, "0.weight'", f"missing on rank {horo.size() - 1}")
    goes_on()


def check_the_same_in_another_order_is_fine():
    network = model(3, 4, 2)
    named = list(network.named_parameters())
    named = named[::-1] if at_last() else named
    optimizer = torch.optim.SGD([parameter for _, parameter in named], lr=0.1)
    optimizer = horo.DistributedOptimizer(optimizer, named)
    horo.broadcast_parameters(dict(named), 0)
    for _ in range(2):
        optimizer.zero_grad()
        network(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    alike(network)


class Breaks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ArithmeticError("in the middle of backward")


def check_exception_in_one_ranks_backward():
    """A rank that catches it may step: gradients that it has not computed count as zeros."""
    network = model(3, 4, 2)
    optimizer = wrapped(network)
    for step in range(3):
        optimizer.zero_grad()
        middle = network[0](torch.ones(2, 3))
        if at_last() and step == 1:
            middle = Breaks.apply(middle)
            fails(ArithmeticError, network[1](middle).sum().backward, "middle")
        else:
            network[1](middle).sum().backward()
        optimizer.step()
        alike(network)


def check_a_skipped_batch_counts_as_zeros():
    network = model(3, 2)
    optimizer = wrapped(network)
    before = network[0].bias.detach().clone()
    optimizer.zero_grad()
    if not at_last():
        network(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    change = before - network[0].bias.detach()
    assert torch.allclose(change, torch.full((2,), 0.1 * (horo.size() - 1) / horo.size())), change
    alike(network)


def check_sparse_on_one_rank():
    table = torch.nn.Embedding(5, 3, sparse=at_last())
    optimizer = wrapped(table)
    table(torch.tensor([1])).sum().backward()
    words = ("weight' is", f"dense on {others()}", f"sparse on rank {horo.size() - 1}")
    fails(horo.MismatchError, optimizer.step, *words)
    fails(horo.MismatchError, optimizer.step, *words)
    goes_on()


def check_sparse_gradients_that_not_all_ranks_have():
    """The first step settles how they are reduced."""
    most = (horo.size() - 1) / horo.size()
    for others_have in (True, False):
        torch.manual_seed(7)
        table = torch.nn.Embedding(4, 3, sparse=True)
        before = table.weight.detach().clone()
        optimizer = wrapped(table)
        for step in range(4):
            optimizer.zero_grad()
            if at_last() and step == 3:
                table.weight.grad = torch.ones(4, 3)  # dense
            elif step == 1 or not at_last() and (step or others_have):
                table(torch.tensor([1])).sum().backward()
            optimizer.step()
        change = (before - table.weight.detach())[:, 0] / 0.1
        wanted = torch.tensor([1 - most, (most if others_have else 0) + 2 + most, 1 - most, 1 - most])
        assert torch.allclose(change, wanted, atol=1e-4), (change, wanted)
        alike(table)


def check_sparse_as_dense_that_not_all_ranks_have():
    """Optimizers treat sparse and dense gradients differently; some accept only one kind."""
    for make, first in itertools.product((torch.optim.SparseAdam, torch.optim.Adagrad), (0, 1)):
        torch.manual_seed(7)
        table = torch.nn.Embedding(4, 3, sparse=True)
        optimizer = wrapped(
            table, lambda parameters: make(list(parameters), lr=0.1), sparse_as_dense=True
        )
        for step in range(4):
            optimizer.zero_grad(set_to_none=step != 2)
            if not at_last() or step % 2 == first:
                rows = table(torch.tensor([horo.rank() % 4, 3]))
                (rows * torch.tensor([0.3, 0.7, 1.1])).pow(3).sum().backward()
            optimizer.step()
            assert table.weight.grad.is_sparse
            alike(table)


def check_a_step_that_raises_and_a_skipped_batch():
    """Gradients that were dropped meanwhile are not those of the failed step."""

    class Refuses(torch.optim.SGD):
        def step(self, closure=None):
            if due:
                raise ArithmeticError(due.pop())
            return super().step(closure)

    for set_to_none in (True, False):
        due = ["in the middle of a step"]
        network = model(3, 2)
        optimizer = wrapped(network, lambda parameters: Refuses(parameters, lr=0.1))
        network(torch.ones(1, 3)).sum().backward()
        fails(ArithmeticError, optimizer.step, "middle")
        for _ in range(2):
            network.zero_grad(set_to_none=set_to_none)
            if not at_last():
                network(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            most = (horo.size() - 1) / horo.size()
            assert torch.allclose(network[0].bias.grad, torch.full((2,), most))
            alike(network)


def check_a_step_that_raises_on_one_rank():
    """A second step() there reduces nothing, whether the gradients are zeros or were dropped."""

    class Refuses(torch.optim.SGD):
        def step(self, closure=None):
            if due:
                if drops is not None:
                    self.zero_grad(set_to_none=drops)
                raise ArithmeticError(due.pop())
            return super().step(closure)

    for factor, drops in ((0.0, None), (1.0, True), (1.0, False)):
        network = model(3, 2)
        optimizer = wrapped(network, lambda parameters: Refuses(parameters, lr=0.1))
        for step in range(3):
            due = ["in the middle of a step"] if at_last() and step == 1 else []
            network.zero_grad()
            (network(torch.ones(1, 3)).sum() * (factor if step == 1 else 1.0)).backward()
            if due:
                fails(ArithmeticError, optimizer.step, "middle")
            optimizer.step()
            kept = step != 1 or factor and not (drops is not None and at_last())
            bias = network[0].bias.grad
            assert bias is None and not kept or bias.tolist() == [float(bool(kept))] * 2, bias


def check_frozen_in_a_step_that_fails_and_not_in_the_next():
    """Gradients of zeros stay in this case."""

    class Halves(horo.Compression.none):
        @staticmethod
        def compress(tensor):
            return (tensor.half() if at_last() and step == 1 else tensor), None

    network = model(3, 2)
    optimizer = wrapped(network, compression=Halves)
    for step in range(3):
        network[0].weight.requires_grad_(step != 1)
        optimizer.zero_grad(set_to_none=True)
        (network(torch.ones(1, 3)).sum() * 0.0).backward()
        if step == 1:
            fails(horo.MismatchError, optimizer.step, "float16")
        else:
            optimizer.step()
            assert torch.equal(network[0].weight.grad, torch.zeros(2, 3))


def check_backward_while_gradients_are_reduced():
    """It fails before it touches the reduction in flight, and step() completes that reduction."""
    for options in ({}, {"compression": horo.Compression.fp16}, {"groups": 1}):
        network = model(3, 2)
        optimizer = wrapped(network, **options)
        for step in range(3):
            optimizer.zero_grad()
            (network(torch.ones(1, 3)).sum() * (horo.rank() + 1)).backward()
            if step:
                optimizer.set_backward_passes_per_step(1)
            if step == 2:
                network.zero_grad(set_to_none=True)
                again = network(torch.ones(1, 3)).sum() * 100.0
                fails(horo.DuplicateNameError, again.backward, ".bias", "being reduced already")
            optimizer.step()
            average = torch.full((2,), (horo.size() + 1) / 2)
            assert torch.equal(network[0].bias.grad, average), network[0].bias.grad
            alike(network)


def check_sparse_gradients_that_no_rank_has_at_first():
    """The first step in which a rank has one settles how they are reduced."""
    for dense in (False, True):
        torch.manual_seed(7)
        table = torch.nn.Embedding(4, 3, sparse=True)
        before = table.weight.detach().clone()
        optimizer = wrapped(table, sparse_as_dense=dense)
        for step in range(5):
            optimizer.zero_grad(set_to_none=True)
            if step == 2 and at_last() or step == 4 and not at_last():
                table(torch.tensor([1])).sum().backward()
            optimizer.step()
            assert table.weight.grad.is_sparse == (step >= 2), step
        change = (before - table.weight.detach())[:, 0] / 0.1
        assert torch.allclose(change, torch.tensor([0.0, 1.0, 0.0, 0.0]), atol=1e-4), change
        alike(table)


def check_signal_in_synchronize():
    """The signal handler runs during the wait, and the wait continues."""
    if not at_last():
        horo.allreduce(torch.ones(1), name="told")
        horo.allreduce(torch.ones(2), name="late", op=horo.Sum)
        return
    told = []
    before = signal.signal(
        signal.SIGUSR1, lambda *_: told.append(horo.allreduce_async(torch.ones(1), name="told"))
    )
    handle = horo.allreduce_async(torch.ones(2), name="late", op=horo.Sum)
    child = os.fork()
    if child == 0:
        time.sleep(0.1)
        os.kill(os.getppid(), signal.SIGUSR1)
        os._exit(0)
    # The other ranks submit `late` only after `told`, which the handler submits.
    assert torch.equal(horo.synchronize(handle), torch.full((2,), float(horo.size())))
    horo.synchronize(told[0])
    os.waitpid(child, 0)
    signal.signal(signal.SIGUSR1, before)


def check_forked_child():
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fails(horo.ForkedError, lambda: horo.allreduce(torch.ones(2)), "fork")
            fails(horo.ForkedError, lambda: horo.broadcast_object(1), "fork")
            fails(horo.ForkedError, lambda: wrapped(model(3, 2)), "fork")
            fails(horo.ForkedError, horo.rank, "fork")
            horo.shutdown()  # the parent's job continues
            code = 7
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WEXITSTATUS(status) == 7, status
    goes_on()


def check_two_frameworks_at_once():
    import numpy

    ours = horo.allreduce_async(torch.ones(4), name="torch's", op=horo.Sum)
    theirs = other.allreduce_async(numpy.ones(4), name="numpy's", op=horo.Sum)
    assert (other.synchronize(theirs) == horo.size()).all()
    assert (horo.synchronize(ours) == horo.size()).all()
    # In flight until the other ranks have come here, too.
    twice = f"both {horo.rank()}"
    named = [horo.allreduce_async(torch.ones(4), name=twice, op=horo.Sum)]
    fails(ValueError, lambda: other.allreduce(numpy.ones(4, "float32"), name=twice), twice)
    horo.barrier()
    for rank in range(horo.size()):
        if rank != horo.rank():
            named.append(horo.allreduce_async(torch.ones(4), name=f"both {rank}", op=horo.Sum))
    for handle in named:
        horo.synchronize(handle)
    assert other.rank() == horo.rank() and other.init() == []
