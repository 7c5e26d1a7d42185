#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of what scripts/gpu-check measures from torch. Started under `horo run`; rank 0 prints a line of JSON per figure.

  submit      host time of allreduce_async_ of a CUDA tensor, and the calls that wait for the device in one training step
  step horo   training step of ResNet-50 with horo.torch.DistributedOptimizer
  step ddp    the same with DistributedDataParallel over NCCL, one rank; start it without horo run
  step alone  the same without communication"""

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

    horo.init()
    tensors = [torch.ones(1024, device="cuda") for _ in range(100)]
    names = ["submit.%d" % i for i in range(len(tensors))]
    figures = []
    for _ in range(30):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        handles = [horo.allreduce_async_(tensor, name=name, op=horo.Sum) for tensor, name in zip(tensors, names)]
        figures.append((time.perf_counter() - begin) / len(tensors) * 1e6)
        for handle in handles:
            horo.synchronize(handle)
    model, batch, labels = make_model()
    step = steps_of(model, horo_optimizer(model), batch, labels)
    for _ in range(WARM_UP):
        step()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        step()
    waits = sum(event.count for event in profile.key_averages() if event.key in WAITS)
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
    torch.cuda.set_device(0)
    if sys.argv[1:] == ["submit"]:
        submit()
    elif len(sys.argv) == 3 and sys.argv[1] == "step" and sys.argv[2] in ("horo", "ddp", "alone"):
        step(sys.argv[2])
    else:
        sys.exit(__doc__)
