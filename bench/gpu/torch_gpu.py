#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of what scripts/gpu-check measures from torch. Started under `horo run`; rank 0 prints a line of JSON per figure.

  submit      host time of allreduce_async_ of a CUDA tensor, and the calls that wait for the device in one training step
  step horo   training step of ResNet-50 with horo.torch.DistributedOptimizer
  step ddp    the same with DistributedDataParallel over NCCL, one rank; start it without horo run
  step alone  the same without communication

HORO_BENCH_TORCH_DEVICE names a Python file that registers another device with torch, as the tests' software_torch.py does:
`submit` then runs there, with a small model, to show that it runs. Its figures say nothing about a GPU."""

import importlib.util
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "examples")):
    sys.path.insert(0, folder)

ROUNDS, STEPS, WARM_UP, BATCH = 9, 10, 10, 64
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


def report(what, unit, figures):
    figures = sorted(figures)
    print(json.dumps({"what": what, "unit": unit, "middle": statistics.median(figures), "least": figures[0],
                      "most": figures[-1]}), flush=True)


class Cuda:
    """The device that is measured."""

    name = "cuda"

    @staticmethod
    def synchronize():
        torch.cuda.synchronize()

    @staticmethod
    def waits_in(step):
        """The calls in a step that wait for the device."""
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            step()
        return sum(event.count for event in profile.key_averages() if event.key in WAITS)

    @staticmethod
    def model():
        return make_model()


class Other:
    """The device of HORO_BENCH_TORCH_DEVICE."""

    def __init__(self, path):
        sys.path.insert(0, os.path.dirname(path))
        spec = importlib.util.spec_from_file_location("bench_torch_device", path)
        self._module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._module)
        self.name = self._module.NAME

    def synchronize(self):
        self._module.synchronize()

    def waits_in(self, step):
        before = self._module.waits()
        step()
        return self._module.waits() - before

    def model(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)).to(self.name)
        return model, torch.randn(4, 8).to(self.name), torch.randint(0, 10, (4,)).to(self.name)


def make_model():
    from resnet50_model import ResNet50

    torch.manual_seed(1)
    model = ResNet50().cuda()
    batch = torch.randn(BATCH, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (BATCH,), device="cuda")
    return model, batch, labels


def steps_of(model, optimizer, batch, labels):
    def step():
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(batch), labels).backward()
        optimizer.step()

    return step


def measure_steps(step):
    """Milliseconds of a step, one figure per round."""
    for _ in range(WARM_UP):
        step()
    figures = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        figures.append((time.perf_counter() - begin) / STEPS * 1e3)
    return figures


def horo_optimizer(model):
    import horo.torch as horo

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return horo.DistributedOptimizer(optimizer, model.named_parameters())


def submit():
    import horo.torch as horo

    path = os.environ.get("HORO_BENCH_TORCH_DEVICE")
    device = Other(path) if path else Cuda()
    horo.init()
    tensors = [torch.ones(1024).to(device.name) for _ in range(100)]
    names = ["submit.%d" % i for i in range(len(tensors))]
    figures = []
    for _ in range(30):
        device.synchronize()
        horo.barrier()
        begin = time.perf_counter()
        handles = [horo.allreduce_async_(tensor, name=name, op=horo.Sum) for tensor, name in zip(tensors, names)]
        figures.append((time.perf_counter() - begin) / len(tensors) * 1e6)
        for handle in handles:
            horo.synchronize(handle)
    model, batch, labels = device.model()
    step = steps_of(model, horo_optimizer(model), batch, labels)
    for _ in range(WARM_UP):
        step()
    waits = device.waits_in(step)
    if horo.rank() == 0:
        report("host time per submitted tensor", "us", figures[5:])
        report("calls that wait for the device in a step", "calls", [waits])
    horo.shutdown()


def step(kind):
    if kind == "ddp":
        import torch.distributed as dist

        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29507")
        dist.init_process_group("nccl", rank=0, world_size=1)
    rank = 0
    if kind == "horo":
        import horo.torch as horo

        horo.init()
        rank = horo.rank()
    model, batch, labels = make_model()
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
    if kind == "horo":
        optimizer = horo_optimizer(model)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    figures = measure_steps(steps_of(model, optimizer, batch, labels))
    if rank == 0:
        report("training step, %s" % kind, "ms", figures)
    if kind == "ddp":
        dist.destroy_process_group()
    if kind == "horo":
        horo.shutdown()


if __name__ == "__main__":
    if "HORO_BENCH_TORCH_DEVICE" not in os.environ:
        torch.cuda.set_device(0)
    if sys.argv[1:] == ["submit"]:
        submit()
    elif len(sys.argv) == 3 and sys.argv[1] == "step" and sys.argv[2] in ("horo", "ddp", "alone"):
        step(sys.argv[2])
    else:
        sys.exit(__doc__)
