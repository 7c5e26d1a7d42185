#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a runtime under torch: Horo, Horovod or torch.distributed with Gloo. Started by
bench/allreduce under the runtime's launcher; measures like the C++ programs (harness.cpp)."""

import argparse
import json
import resource
import time

import torch

from benchlib import workloads

WARM_UP_STEPS, LEAST_STEPS, MOST_STEPS = 2, 3, 20000


class Horo:
    def __init__(self):
        import horo.torch as horo

        horo.init()
        self._horo = horo
        self.rank, self.ranks = horo.rank(), horo.size()
        self.wait = horo.synchronize

    def submit(self, tensor, name):
        return self._horo.allreduce_async_(tensor, name=name, op=self._horo.Sum)

    def entries(self):
        return self._horo.counters()["entries"]

    def close(self):
        self._horo.shutdown()


class Horovod:
    def __init__(self):
        import horovod.torch as hvd

        hvd.init()
        self._hvd = hvd
        self.rank, self.ranks = hvd.rank(), hvd.size()
        self.wait = hvd.synchronize

    def submit(self, tensor, name):
        return self._hvd.allreduce_async_(tensor, name=name, op=self._hvd.Sum)

    def entries(self):
        return None

    def close(self):
        self._hvd.shutdown()


class TorchGloo:
    def __init__(self):
        import torch.distributed as dist

        dist.init_process_group("gloo")
        self._dist = dist
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()

    def submit(self, tensor, name):
        return self._dist.all_reduce(tensor, async_op=True)

    def wait(self, work):
        work.wait()

    def entries(self):
        return None

    def close(self):
        self._dist.destroy_process_group()


BACKENDS = {"horo": Horo, "horovod": Horovod, "torch": TorchGloo}


class Case:
    """The tensors of a workload, and a step that sums them."""

    def __init__(self, runtime, workload, bucketed):
        self.tensors = [torch.zeros(count, dtype=torch.float32) for count in workload.counts]
        self._runtime = runtime
        self._names = ["%s.%d.%d" % (workload.name, workload.counts[0], i) for i in range(len(self.tensors))]
        self._buckets = []
        if bucketed:
            for group in workloads.buckets(workload.counts):
                flat = torch.zeros(sum(workload.counts[i] for i in group), dtype=torch.float32)
                self._buckets.append((flat, [self.tensors[i] for i in group]))
        self.step = self._step_bucketed if bucketed else self._step

    def _step(self):
        submit, wait = self._runtime.submit, self._runtime.wait
        handles = [submit(tensor, name) for tensor, name in zip(self.tensors, self._names)]
        for handle in handles:
            wait(handle)

    def _step_bucketed(self):
        handles = []
        for flat, group in self._buckets:
            torch.cat(group, out=flat)
            handles.append(self._runtime.submit(flat, None))
        for handle, (flat, group) in zip(handles, self._buckets):
            self._runtime.wait(handle)
            begin = 0
            for tensor in group:
                tensor.copy_(flat[begin:begin + tensor.numel()])
                begin += tensor.numel()


def pattern(index, count):
    return ((torch.arange(count) + 7 * index) % 13).to(torch.float32)


def verify(case, workload, runtime):
    for index, tensor in enumerate(case.tensors):
        tensor.copy_(pattern(index, tensor.numel()) * (runtime.rank + 1))
    case.step()
    every = runtime.ranks * (runtime.ranks + 1) // 2
    for index, tensor in enumerate(case.tensors):
        if not torch.equal(tensor, pattern(index, tensor.numel()) * every):
            raise SystemExit("case %s: tensor %d has a wrong sum on rank %d" % (workload.name, index, runtime.rank))
        tensor.zero_()


def agree(case, runtime, number):
    """Gives rank 0's number to every rank. The tensors are all zero before and after."""
    cell = case.tensors[0]
    cell[0] = number if runtime.rank == 0 else 0.0
    case.step()
    agreed = float(cell[0])
    cell[0] = 0.0
    return agreed


def context_switches():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_nvcsw + usage.ru_nivcsw


def measure(case, runtime, budget):
    clock, step = time.perf_counter, case.step
    for _ in range(WARM_UP_STEPS):
        step()
    begin = clock()
    step()
    once = agree(case, runtime, clock() - begin)
    steps = int(min(max(budget / max(once, 1e-7), LEAST_STEPS), MOST_STEPS))
    seconds = []
    entries, switches = runtime.entries(), context_switches()
    for _ in range(steps):
        begin = clock()
        step()
        seconds.append(clock() - begin)
    switches = context_switches() - switches
    if entries is not None:
        entries = round((runtime.entries() - entries) / steps, 2)
    seconds.sort()

    def at(share):
        return round(seconds[int(share * (steps - 1))] * 1e6, 2)

    return {"reps": steps, "median_us": at(0.5), "min_us": at(0), "p95_us": at(0.95), "entries_per_step": entries,
            "switches_per_step": round(switches / steps, 2)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=sorted(BACKENDS), required=True)
    parser.add_argument("--cases")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--idle", type=float, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    runtime = BACKENDS[args.backend]()
    if args.idle:
        Case(runtime, workloads.Workload("idle", (1,)), False).step()
        with open(args.out, "a", encoding="ascii") as out:
            print("ready", file=out)
        time.sleep(args.idle)
    for workload in workloads.read(args.cases) if args.cases else []:
        bucketed = args.backend == "torch" and workload.name == "resnet50"
        case = Case(runtime, workload, bucketed)
        verify(case, workload, runtime)
        row = dict(case=workload.name, bytes=workload.bytes, **measure(case, runtime, args.seconds))
        if runtime.rank == 0:
            with open(args.out, "a", encoding="ascii") as out:
                print(json.dumps(row), file=out)
    runtime.close()


if __name__ == "__main__":
    main()
