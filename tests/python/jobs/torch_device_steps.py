# SPDX-License-Identifier: Apache-2.0
"""What happens between the steps of an optimizer whose tensors are in the memory of a device: errors that come
after a wait has ended, and models that move between the device and the host."""

import contextlib

import torch

import horo.torch as horo
import software_torch as software
from expect import fails
from horo import _handles, _native

DEVICE = software.DEVICE


def network():
    torch.manual_seed(4)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def batch(step):
    generator = torch.Generator().manual_seed(100 * step + horo.rank())
    return torch.randn(5, 6, generator=generator), torch.randn(5, 3, generator=generator)


def backward(model, step, device):
    x, y = (one.to(device) for one in batch(step))
    ((model(x) - y) ** 2).mean().backward()


class LateErrors:
    """The library; the operations in `failed` end with an error after their results were handed out, and
    those in `busy` are not complete."""

    def __init__(self, library):
        self._library = library
        self.failed, self.busy = set(), set()

    def __getattr__(self, name):
        return getattr(self._library, name)

    def horo_poll(self, handle):
        if handle in self.busy:
            return _native.IN_PROGRESS
        if handle in self.failed:
            self._library.horo_poll(0)  # leaves an error
            return _native.UNSUPPORTED
        return self._library.horo_poll(handle)


@contextlib.contextmanager
def late_errors():
    while _handles._retired:
        _handles.sweep_retired()
    _handles.fast = library = LateErrors(_handles.fast)
    try:
        yield library
    finally:
        _handles.fast = library._library


def check_an_error_that_is_known_when_a_wait_ends_is_raised_by_that_wait():
    tensor = torch.ones(100).to(DEVICE)
    with late_errors() as library:
        handle = horo.allreduce_async(tensor, name="late.known", op=horo.Sum)
        library.failed.add(handle)
        _handles.wait(handle)
        fails(horo.HoroError, lambda: horo.synchronize(handle), "operation 0")
        assert handle not in _handles.PENDING and not _handles._late_errors
        group = horo.grouped_allreduce_async([tensor, tensor], name="late.group", op=horo.Sum)
        members = list(_handles.PENDING[group][1])
        library.failed.add(members[0])
        for member in members:
            _handles.wait(member)
        fails(horo.HoroError, lambda: horo.synchronize(group), "operation 0")
        assert not any(member in _handles.PENDING for member in members)


def check_an_error_that_comes_later_leaves_nothing_in_flight():
    """It is told at the end of the next wait, whose own operation has ended then."""
    tensor = torch.ones(100).to(DEVICE)
    with late_errors() as library:
        handle = horo.allreduce_async(tensor, name="late.first", op=horo.Sum)
        library.busy.add(handle)
        horo.synchronize(handle)
        library.busy.clear()
        library.failed.add(handle)
        _handles.wait(handle)
        following = horo.allreduce_async(tensor, name="late.next", op=horo.Sum)
        fails(
            horo.HoroError,
            lambda: horo.synchronize(following),
            "the result of an operation before this one is not valid",
        )
        assert following not in _handles.PENDING and not _handles._late_errors


def check_an_error_of_the_last_step_leaves_the_optimizer_whole():
    model = network().to(DEVICE)
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = horo.DistributedOptimizer(plain, model.named_parameters())

    def step():
        optimizer.zero_grad()
        backward(model, 0, DEVICE)
        optimizer.step()

    with late_errors() as library:
        backward(model, 0, DEVICE)
        last = optimizer._horo_reducer.gradients[0].handle
        library.busy.add(last)
        optimizer.step()
        library.busy.clear()
        library.failed.add(last)
        fails(horo.HoroError, step, "the result of an operation before this one is not valid")
        assert not optimizer._horo_reducer.in_flight()
        step()
    software.require_no_findings()


def moved(model, device):
    """Moves the model as model.to() does. torch does not let the parameters of a backend like this one
    stay the same objects without swap_tensors()."""
    for parameter in model.parameters():
        grad, parameter.grad = parameter.grad, None
        torch.utils.swap_tensors(parameter, torch.nn.Parameter(parameter.detach().to(device)))
        parameter.grad = None if grad is None else grad.to(device)


def train_moving(devices, **options):
    """The parameters after a step on each of these devices."""
    model = network().to(devices[0])
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = horo.DistributedOptimizer(plain, model.named_parameters(), **options)
    for step, device in enumerate(devices):
        moved(model, device)
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        backward(model, step, device)
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


def check_a_model_moves_between_the_device_and_the_host_between_steps():
    for options in (
        {},
        {"groups": 1},
        {"gradients_in_shared_memory": True},
        {"compression": horo.Compression.fp16},
    ):
        expected = train_moving(["cpu"] * 6, **options)
        for first in ("cpu", DEVICE):
            other = DEVICE if first == "cpu" else "cpu"
            found = train_moving([first, first, other, other, first, first], **options)
            for one, wanted in zip(found, expected):
                torch.testing.assert_close(one, wanted, rtol=1e-3, atol=1e-4)
    software.require_no_findings()
