# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on handwritten digits, data-parallel, with PyTorch:

    PYTHONPATH=build/release/python build/release/bin/horo run -np 2 python3 examples/torch_digits.py

Every rank takes its share of each batch. Horo averages the gradients over all ranks while backward
is still running. The result does not depend on the number of ranks, up to rounding. Four lines,
marked (1) to (4), turn the training of one process into a distributed one.
"""

import gzip
import os
import sys
import time

import torch
import torch.nn.functional as F

import horo.torch as horo

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv.gz")
BATCH = 64  # over all ranks together
EPOCHS = 12
LEARNING_RATE = 0.05
MOMENTUM = 0.9
TEST_EVERY = 5  # every fifth image is kept for the test


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.second = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = torch.nn.Linear(32 * 4 * 4, 64)
        self.scores = torch.nn.Linear(64, 10)

    def forward(self, images):
        x = F.relu(self.first(images))
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.scores(F.relu(self.hidden(x.flatten(1))))


def read_digits(path):
    """((images, labels) for training, (images, labels) for the test). Pixels are from 0 to 1."""
    with gzip.open(path, "rt") as file:
        rows = torch.tensor([[int(value) for value in line.split(",")] for line in file])
    images = rows[:, :64].reshape(-1, 1, 8, 8).float() / 16
    labels = rows[:, 64]
    test = torch.arange(len(rows)) % TEST_EVERY == TEST_EVERY - 1
    return (images[~test], labels[~test]), (images[test], labels[test])


def train(network, optimizer, images, labels):
    shuffle = torch.Generator().manual_seed(1998)  # all ranks shuffle in the same way
    for _ in range(EPOCHS):
        order = torch.randperm(len(images), generator=shuffle)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            mine = order[start : start + BATCH][horo.rank() :: horo.size()]
            optimizer.zero_grad()
            F.cross_entropy(network(images[mine]), labels[mine]).backward()
            optimizer.step()


def accuracy(network, images, labels):
    """The share of right answers. Each rank tests its part of the images."""
    mine = slice(horo.rank(), None, horo.size())
    with torch.no_grad():
        right = (network(images[mine]).argmax(1) == labels[mine]).sum()
    return horo.allreduce(right, op=horo.Sum, name="right").item() / len(images)


def main():
    horo.init()  # (1)
    torch.set_num_threads(1)  # one core per rank
    torch.manual_seed(1998)
    (images, labels), test = read_digits(sys.argv[1] if len(sys.argv) > 1 else DATA)

    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    optimizer = horo.DistributedOptimizer(optimizer, network.named_parameters())  # (2)
    horo.broadcast_parameters(network.state_dict(), root_rank=0)  # (3): all start equal

    begin = time.perf_counter()
    train(network, optimizer, images, labels)  # (4): each rank trains on its part of every batch
    seconds = time.perf_counter() - begin

    right = accuracy(network, *test)
    if horo.rank() == 0:
        counters = horo.counters()
        rate = len(images) // BATCH * BATCH * EPOCHS / seconds
        reduced, fused = counters["bytes"] / 1e6, counters["fused_bytes"] / 1e6
        print(f"{horo.size()} rank(s): test accuracy {100 * right:.2f} %, {rate:.0f} images/s")
        print(f"reduced {reduced:.1f} MB per rank, {fused:.1f} MB of it fused with other tensors")
        print("next: docs/guide/python.md makes your own training run like this one")


if __name__ == "__main__":
    main()
