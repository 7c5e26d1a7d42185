# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with torch's own DistributedDataParallel on Horo's backend:

    PYTHONPATH=build/release/python build/release/bin/horo run -np 4 python3 examples/torch_ddp.py
    PYTHONPATH=build/release/python python3 examples/torch_ddp.py                # one rank
    PYTHONPATH=build/release/python torchrun --nproc_per_node 4 examples/torch_ddp.py

The result does not depend on the number of ranks, up to rounding. Two lines, marked (1) and (2), are all
that names Horo. Without them, `horo run --torch-backend horo` does the same for a program that asks for gloo.
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import horo.torch.distributed  # noqa: F401  # (1) makes the backend known

SAMPLES = 2048
BATCH = 64  # over all ranks together
EPOCHS = 10


def spirals():
    """Points of two spirals, and which of them each point belongs to."""
    generator = torch.Generator().manual_seed(1)
    along = torch.rand(SAMPLES, generator=generator) * 6
    arm = torch.randint(0, 2, (SAMPLES,), generator=generator)
    angle = along + arm * torch.pi
    points = torch.stack([along * angle.cos(), along * angle.sin()], 1) / 6
    return points + 0.02 * torch.randn(points.shape, generator=generator), arm


def main():
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "29500")):
        os.environ.setdefault(name, value)  # a launcher has set them, unless the program runs alone
    dist.init_process_group("horo")  # (2) instead of "gloo"
    rank, size = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(2)
    network = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2)
    )
    network = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    points, arms = spirals()
    for epoch in range(EPOCHS):
        order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch))
        for start in range(0, SAMPLES, BATCH):
            mine = order[start : start + BATCH][rank::size]
            optimizer.zero_grad()
            F.cross_entropy(network(points[mine]), arms[mine]).backward()
            optimizer.step()
    right = (network(points[rank::size]).argmax(1) == arms[rank::size]).sum()
    dist.all_reduce(right)
    if rank == 0:
        print(f"{size} ranks: {100 * right.item() / SAMPLES:.1f} % of the points are classified right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
