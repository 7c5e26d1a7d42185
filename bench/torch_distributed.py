#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings of torch.distributed on the backend horo against gloo, in turns in one run of the same ranks: each backend is a
process group of one program, and every round trains with each, in changing order.

  build/release/bin/horo run -np 2 python3 bench/torch_distributed.py --case ddp
  build/release/bin/horo run -np 2 python3 bench/torch_distributed.py --case fsdp --rounds 15

  ddp   ResNet-50 on small images under DistributedDataParallel
  fsdp  a small transformer under FSDP2 (fully_shard)

Rank 0 prints the median step of each, and of two trainings without communication: `alone`, without DistributedDataParallel or
FSDP, and for ddp `unreduced`, with DistributedDataParallel and a hook that leaves the gradients as they are, which shows what
DistributedDataParallel's own copies cost. Then the ratio of the steps, and that of the exposed communication (a step minus the
step of each training without communication in the same round), with their quartiles over the rounds. The same for the time of
the processor, which other programs on the machine disturb less."""

import argparse
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

import horo.torch.distributed  # noqa: F401  # makes the backend known

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples"))

clock = time.perf_counter


def unreduced(_, bucket):
    """A hook of DistributedDataParallel that moves nothing."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def resnet(args, group, hook):
    from resnet50_model import ResNet50

    network = ResNet50()
    if group is not None:
        network = DistributedDataParallel(network, process_group=group, gradient_as_bucket_view=args.bucket_view)
        if hook is not None:
            network.register_comm_hook(None, hook)
    return network, torch.randn(args.batch, 3, 32, 32)


def transformer(args, group, _):
    layer = nn.TransformerEncoderLayer(args.width, 4, 4 * args.width, dropout=0.0, batch_first=True)
    network = nn.TransformerEncoder(layer, args.layers, enable_nested_tensor=False)
    if group is not None:
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        mesh = DeviceMesh.from_group(group, "cpu")
        for layer in network.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(network, mesh=mesh)
    return network, torch.randn(args.batch, 32, args.width)


class Trainer:
    """One network and its optimizer, on the ranks of `group`; None: this rank alone."""

    def __init__(self, args, group=None, hook=None):
        torch.manual_seed(0)
        self._network, self._input = {"ddp": resnet, "fsdp": transformer}[args.case](args, group, hook)
        self._optimizer = torch.optim.SGD(self._network.parameters(), lr=1e-4)

    def seconds(self, steps):
        """The mean time of a step, and of the processor for it in this rank."""
        dist.barrier()
        begin, cpu = clock(), time.process_time()
        for _ in range(steps):
            self._optimizer.zero_grad()
            self._network(self._input).square().mean().backward()
            self._optimizer.step()
        return (clock() - begin) / steps, (time.process_time() - cpu) / steps


def measure(args):
    """Name -> (seconds of a step, seconds of the processor for it), by round."""
    everyone = list(range(dist.get_world_size()))
    gloo = dist.new_group(everyone, backend="gloo")
    trainers = {"horo": Trainer(args, dist.group.WORLD), "gloo": Trainer(args, gloo), "alone": Trainer(args)}
    if args.case == "ddp":
        trainers["unreduced"] = Trainer(args, gloo, unreduced)
    times = {name: [] for name in trainers}
    for turn in range(-1, args.rounds):
        for name in list(trainers) if turn % 2 else list(trainers)[::-1]:
            seconds = trainers[name].seconds(args.steps)
            if turn >= 0:
                times[name].append(seconds)
    return times


def spread(ratios):
    ordered = sorted(ratios)
    quarter = len(ordered) // 4
    return f"{statistics.median(ordered):.2f} ({ordered[quarter]:.2f} to {ordered[-1 - quarter]:.2f})"


def report_exposed(ours, theirs, bases, name):
    each = [(one - base) / (other - base) for one, other, base in zip(ours, theirs, bases) if other > base]
    one, other, base = (statistics.median(row) for row in (ours, theirs, bases))
    text = spread(each) if each else "unknown: gloo is not slower in any round"
    print(f"  beyond {name} {text}; of the medians {(one - base) / max(other - base, 1e-9):.2f}")


def report(args, times):
    for index, what in enumerate(("time", "processor time")):
        rows = {name: [pair[index] for pair in pairs] for name, pairs in times.items()}
        print(f"{what} of a step:", ", ".join(f"{name} {1e3 * statistics.median(row):.1f} ms" for name, row in rows.items()))
        print(f"  horo : gloo {spread(ours / theirs for ours, theirs in zip(rows['horo'], rows['gloo']))}")
        for base in ("alone", "unreduced"):
            if base in rows:
                report_exposed(rows["horo"], rows["gloo"], rows[base], base)
    print(f"{args.case}, {dist.get_world_size()} ranks, {args.rounds} rounds of {args.steps} steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--case", choices=("ddp", "fsdp"), default="ddp")
    for name, value in (("rounds", 9), ("steps", 3), ("batch", 2), ("layers", 4), ("width", 256)):
        parser.add_argument("--" + name, type=int, default=value, help="%(default)s")
    parser.add_argument("--bucket-view", action="store_true", help="ddp: with gradient_as_bucket_view=True")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("horo")
    times = measure(args)
    if dist.get_rank() == 0:
        report(args, times)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
