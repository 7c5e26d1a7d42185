#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a data-parallel training from torch: with Horo, Horovod or DistributedDataParallel. Started by
bench/training under the runtime's launcher; rank 0 appends a row per case to --out.

  hook       from the moment that torch has a gradient until its hook has submitted it, per gradient
  optimizer  one synchronize() of the optimizer over ResNet-50's 161 gradients, which are all there
  resnet50   a training step of ResNet-50 minus the same step without communication, in turns: its time, and as
             resnet50-cpu the CPU time of a rank
  elastic ranks also have resnet50-commit: commit() after a step, in the rank that comes last and waits for nobody"""

import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

from benchlib import workloads

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples"))

clock = time.perf_counter


class Horo:
    """Horo without options."""

    keeps_gradients = False
    options = {}

    def __init__(self):
        import horo.torch as horo

        horo.init()
        self._horo = horo
        self.rank, self.ranks = horo.rank(), horo.size()
        self.barrier, self.close = horo.barrier, horo.shutdown

    def distribute(self, model, optimizer, case):
        named = [("%s.%s" % (case, name), parameter) for name, parameter in model.named_parameters()]
        return model, self._horo.DistributedOptimizer(optimizer, named, **self.options)

    def gather(self, numbers):
        """The equally long lists of all ranks, as rows."""
        return self._horo.allgather(torch.tensor([numbers], dtype=torch.float64), name="bench.gather")


class HoroShared(Horo):
    keeps_gradients = True
    options = {"gradients_in_shared_memory": True}


class HoroCopied(Horo):
    options = {"gradients_in_shared_memory": False}


class HoroElastic(Horo):
    """A rank of an elastic job, which commits its state after each step."""

    def __init__(self):
        super().__init__()
        self.commits = True
        self.commit_seconds = []

    def distribute(self, model, optimizer, case):
        model, optimizer = super().distribute(model, optimizer, case)
        state = self._horo.elastic.TorchState(model, optimizer)
        step, seconds = optimizer.step, self.commit_seconds

        def step_and_commit():
            step()
            if not self.commits:
                return
            begin = clock()
            state.commit()
            seconds.append(clock() - begin)

        optimizer.step = step_and_commit
        return model, optimizer


class Horovod(Horo):
    def __init__(self):
        import horovod.torch as hvd

        hvd.init()
        self._horo = hvd
        self.rank, self.ranks = hvd.rank(), hvd.size()
        self.barrier, self.close = hvd.barrier, hvd.shutdown


class Ddp:
    """DistributedDataParallel, which has no optimizer."""

    keeps_gradients = False
    backend = "gloo"

    def __init__(self):
        import torch.distributed as dist

        dist.init_process_group(self.backend)
        self._dist = dist
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.barrier, self.close = dist.barrier, dist.destroy_process_group

    def distribute(self, model, optimizer, _case):
        # The other contenders do not sum the running statistics of batch norms either.
        return torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False), optimizer

    def gather(self, numbers):
        mine = torch.tensor(numbers, dtype=torch.float64)
        rows = [torch.empty_like(mine) for _ in range(self.ranks)]
        self._dist.all_gather(rows, mine)
        return torch.stack(rows)


class DdpHoro(Ddp):
    """DistributedDataParallel on Horo's backend."""

    backend = "horo"

    def __init__(self):
        import horo.torch.distributed  # makes the backend known

        super().__init__()


BACKENDS = {"ddp-horo": DdpHoro, "horo": Horo, "horo-shared": HoroShared, "horo-copied": HoroCopied, "horo-elastic": HoroElastic, "horovod": Horovod, "ddp": Ddp}


def row(case, size, seconds, **more):
    ordered = sorted(seconds)

    def at(share):
        return round(ordered[int(share * (len(ordered) - 1))] * 1e6, 3)

    return {"case": case, "bytes": size, "reps": len(ordered), "median_us": at(0.5), "min_us": at(0),
            "p95_us": at(0.95), **more}


def agreed_steps(runtime, budget, once):
    """Number of steps of about `once` seconds that all ranks take."""
    return int(min(max(budget / max(float(runtime.gather([once]).max()), 1e-6), 3), 2000))


class Parameters(torch.nn.Module):
    def __init__(self, counts):
        super().__init__()
        self.all = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(count)) for count in counts])


# -- hook ----------------------------------------------------------------------------------------


def attach(parameter, hook, keep):
    """Attaches hooks as the runtimes do; the first attached hook runs first."""
    register = getattr(parameter, "register_post_accumulate_grad_hook", None)
    if register is not None:
        register(hook)
        return
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    accumulator.register_hook(hook)
    keep.append(accumulator)


class Stopwatch:
    """Hooks before and after those of a runtime, for each parameter."""

    def __init__(self, parameters):
        self.seconds, self._begin, self._keep, self._parameters = [], 0.0, [], parameters
        for parameter in parameters:
            attach(parameter, self._start, self._keep)

    def _start(self, *_):
        self._begin = clock()

    def _stop(self, *_):
        self.seconds.append(clock() - self._begin)

    def close(self):
        for parameter in self._parameters:
            attach(parameter, self._stop, self._keep)


def hook_seconds(runtime, count, steps, distributed):
    """Times between our two hooks, with the runtime's hook between them or without it."""
    model = Parameters([256] * count)
    watch = Stopwatch(list(model.parameters()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    if distributed:
        model, optimizer = runtime.distribute(model, optimizer, "hook")
    watch.close()
    for step in range(steps):
        if step == 3:  # all names are declared by then
            watch.seconds.clear()
        model.zero_grad(set_to_none=not runtime.keeps_gradients)
        sum(parameter.sum() for parameter in model.parameters()).backward()
        if distributed:
            optimizer.synchronize()
    return watch.seconds


def measure_hook(runtime, args):
    if isinstance(runtime, Ddp):
        return []  # its hooks are not in Python
    count = 161
    nothing = statistics.median(hook_seconds(runtime, count, args.hook_steps, False))
    found = hook_seconds(runtime, count, args.hook_steps, True)
    return [row("hook", 1024, [max(seconds - nothing, 0.0) for seconds in found])]


# -- optimizer -----------------------------------------------------------------------------------


def verify(runtime, parameters, synchronize):
    for index, parameter in enumerate(parameters):
        parameter.grad.copy_(((torch.arange(parameter.numel()) + index) % 13).float() * (runtime.rank + 1))
    synchronize()
    for index, parameter in enumerate(parameters):
        wanted = ((torch.arange(parameter.numel()) + index) % 13).float() * ((runtime.ranks + 1) / 2)
        if not torch.equal(parameter.grad, wanted):
            raise SystemExit("parameter %d has a wrong gradient on rank %d" % (index, runtime.rank))
        parameter.grad.zero_()


def measure_optimizer(runtime, args):
    if isinstance(runtime, Ddp):
        return []
    workload = workloads.resnet50()
    model = Parameters(reversed(workload.counts))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    _, optimizer = runtime.distribute(model, optimizer, "optimizer")
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for _ in range(2):
        optimizer.synchronize()
    verify(runtime, list(model.parameters()), optimizer.synchronize)
    begin = clock()
    optimizer.synchronize()
    seconds = []
    for _ in range(agreed_steps(runtime, args.seconds, clock() - begin)):
        begin = clock()
        optimizer.synchronize()
        seconds.append(clock() - begin)
    return [row("optimizer", workload.bytes, seconds)]


# -- resnet50 ------------------------------------------------------------------------------------


class Training:
    def __init__(self, runtime, args, distributed):
        from resnet50_model import CLASSES, ResNet50

        torch.manual_seed(1)
        self._model = ResNet50()
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01, momentum=0.9)
        self._none = not (runtime.keeps_gradients or args.kept)
        self._images = torch.randn(args.batch, 3, args.image, args.image)
        self._labels = torch.randint(CLASSES, (args.batch,))
        if distributed:
            self._model, self._optimizer = runtime.distribute(self._model, self._optimizer, "resnet50")

    def step(self):
        self._model.zero_grad(set_to_none=self._none)  # Horovod's optimizers have no set_to_none
        F.cross_entropy(self._model(self._images), self._labels).backward()
        self._optimizer.step()


class Times:
    """Elapsed time and CPU time of this process for the steps of one training."""

    def __init__(self):
        self.wall, self.cpu = [], []

    def take(self, step, counts):
        begin, cpu = clock(), time.process_time()
        step()
        if counts:
            self.wall.append(clock() - begin)
            self.cpu.append(time.process_time() - cpu)


def measure_resnet50(runtime, args):
    trainings = [Training(runtime, args, distributed) for distributed in (True, False)]
    times = [Times(), Times()]
    for step in range(args.warm_up + args.steps):
        for index in (0, 1) if step % 2 else (1, 0):
            runtime.barrier()
            times[index].take(trainings[index].step, step >= args.warm_up)
    # A step ends with the last rank. Waiting for a rank that computes longer is part of both trainings.
    wall = [runtime.gather(one.wall).max(0).values.tolist() for one in times]
    cpu = [runtime.gather(one.cpu).mean(0).tolist() for one in times]
    size = workloads.resnet50().bytes
    rows = [difference("resnet50", size, *wall), difference("resnet50-cpu", size, *cpu)]
    if isinstance(runtime, HoroElastic):
        commits = runtime.gather(runtime.commit_seconds[args.warm_up:]).min(0).values.tolist()
        rows.append(row("resnet50-commit", size, commits))
    return rows


def difference(case, size, steps, local):
    """Differences between neighbouring steps, because they change less than the machine does over the run."""
    return row(case, size, [one - other for one, other in zip(steps, local)],
               step_us=round(statistics.median(steps) * 1e6, 1), local_us=round(statistics.median(local) * 1e6, 1))


CASES = {"hook": measure_hook, "optimizer": measure_optimizer, "resnet50": measure_resnet50}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=sorted(BACKENDS), required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--hook-steps", type=int, default=30)
    parser.add_argument("--image", type=int, default=32)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--kept", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    runtime = BACKENDS[args.backend]()
    for case in args.cases.split(","):
        made = CASES[case](runtime, args)
        if runtime.rank == 0:
            with open(args.out, "a", encoding="ascii") as out:
                out.writelines(json.dumps(one) + "\n" for one in made)
        runtime.barrier()
    runtime.close()


if __name__ == "__main__":
    main()
