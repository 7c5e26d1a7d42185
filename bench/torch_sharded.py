#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of a small transformer under FSDP2, on Horo's backend of torch.distributed against gloo, in turns in one run of
the same ranks: both are process groups of one program, and every round trains with each, in changing order.

  build/release/bin/horo run -np 2 python3 bench/torch_sharded.py
  ... bench/torch_sharded.py --rounds 15 --layers 4 --width 256

Rank 0 prints the median step of each, their ratio with its spread over the rounds, and the step without communication."""

import argparse
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import horo.torch.distributed  # noqa: F401  # makes the backend known

clock = time.perf_counter


def network(args):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(args.width, 4, 4 * args.width, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, args.layers, enable_nested_tensor=False)


class Trainer:
    """One network and its optimizer; `group`: sharded over these ranks."""

    def __init__(self, args, group=None):
        self._network = network(args)
        if group is not None:
            mesh = DeviceMesh.from_group(group, "cpu")
            for layer in self._network.layers:
                fully_shard(layer, mesh=mesh)
            fully_shard(self._network, mesh=mesh)
        self._optimizer = torch.optim.AdamW(self._network.parameters())
        self._input = torch.randn(args.batch, args.length, args.width)

    def seconds(self, steps):
        """The mean time of a step."""
        dist.barrier()
        begin = clock()
        for _ in range(steps):
            self._optimizer.zero_grad()
            self._network(self._input).square().mean().backward()
            self._optimizer.step()
        return (clock() - begin) / steps


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, value in (("rounds", 11), ("steps", 4), ("layers", 4), ("width", 256), ("batch", 2), ("length", 32)):
        parser.add_argument("--" + name, type=int, default=value, help="%(default)s")
    return parser.parse_args()


def main():
    args = parse()
    torch.set_num_threads(1)
    dist.init_process_group("horo")
    everyone = list(range(dist.get_world_size()))
    trainers = {
        "horo": Trainer(args, dist.group.WORLD),
        "gloo": Trainer(args, dist.new_group(everyone, backend="gloo")),
        "alone": Trainer(args),
    }
    times = {name: [] for name in trainers}
    for turn in range(-1, args.rounds):
        for name in list(trainers) if turn % 2 else list(trainers)[::-1]:
            seconds = trainers[name].seconds(args.steps)
            if turn >= 0:
                times[name].append(seconds)
    if dist.get_rank() == 0:
        report(args, times)
    dist.destroy_process_group()


def report(args, times):
    ratios = sorted(ours / theirs for ours, theirs in zip(times["horo"], times["gloo"]))
    quarter = len(ratios) // 4
    for name, seconds in times.items():
        print(f"{name}: {1e3 * statistics.median(seconds):.1f} ms a step")
    print(f"horo : gloo {statistics.median(ratios):.2f} (quartiles {ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f}), "
          f"{dist.get_world_size()} ranks, {args.rounds} rounds of {args.steps} steps")


if __name__ == "__main__":
    main()
