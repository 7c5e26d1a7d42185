# SPDX-License-Identifier: Apache-2.0
"""A rank whose tensors are on two devices, as those of a model in parts are. All pass through the host's memory
(HORO_GPU_OPERATIONS=staged)."""

import torch

import horo.torch as horo
import software_torch as software

DEVICES = [f"{software.NAME}:{index}" for index in range(2)]


class TwoParts(torch.nn.Module):
    """The first layer is on the one device, the last on the other."""

    def __init__(self, devices):
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Linear(6, 8).to(devices[0])
        self.last = torch.nn.Linear(8, 3).to(devices[1])

    def forward(self, x):
        middle = torch.relu(self.first(x.to(self.first.weight.device)))
        # By the host, because torch's copy between two devices of software does not order their streams.
        return self.last(middle.cpu().to(self.last.weight.device))


def batch(step):
    generator = torch.Generator().manual_seed(100 * step + horo.rank())
    return torch.randn(5, 6, generator=generator), torch.randn(5, 3, generator=generator)


def train(devices, name):
    """The weights after four steps, in the host's memory."""
    model = TwoParts(devices)
    plain = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    named = [(f"{name}.{one}", parameter) for one, parameter in model.named_parameters()]
    optimizer = horo.DistributedOptimizer(plain, named)
    horo.broadcast_parameters(model.state_dict(), root_rank=0)
    for step in range(4):
        software.plan(f"seed={step * 8 + horo.rank()} delay={step * 40}")
        x, y = batch(step)
        optimizer.zero_grad()
        ((model(x) - y.to(model.last.weight.device)) ** 2).mean().backward()
        optimizer.step()
    return [one.detach().cpu() for one in model.parameters()]


def check_tensors_of_both_devices_are_summed():
    for seed in range(4):
        software.plan(f"seed={seed * 8 + horo.rank()} delay={seed * 40}")
        tensors = [torch.full((100,), float(k + 1)).to(device) for k, device in enumerate(DEVICES * 2)]
        handles = [
            horo.allreduce_async(tensor, name=f"both.{k}", op=horo.Sum) for k, tensor in enumerate(tensors)
        ]
        for k, handle in enumerate(handles):
            result = horo.synchronize(handle)
            assert result.device == tensors[k].device
            assert torch.equal(result.cpu(), torch.full((100,), float((k + 1) * horo.size()))), (k, result)
        software.require_no_findings()


def check_ranks_may_use_different_devices_for_one_tensor():
    device = DEVICES[horo.rank() % 2]
    tensor = torch.full((50,), float(horo.rank() + 1)).to(device)
    rows = horo.allgather(tensor.reshape(5, 10), name="rows")
    assert str(rows.device) == device and rows.shape == (5 * horo.size(), 10)
    expected = torch.arange(1, horo.size() + 1).repeat_interleave(50).reshape(-1, 10).float()
    assert torch.equal(rows.cpu(), expected)
    software.require_no_findings()


def check_a_model_in_two_parts_is_trained_as_on_the_host():
    expected = train(["cpu", "cpu"], "host")
    found = train(DEVICES, "devices")
    for one, other in zip(found, expected):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6), (one, other)
    software.require_no_findings()
