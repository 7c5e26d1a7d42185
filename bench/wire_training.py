# SPDX-License-Identifier: Apache-2.0
"""Trains the digits of examples/torch_digits.py with gradients that travel between hosts in full, as bfloat16 and as float16, with
and without error feedback, and prints the loss and the accuracy of each. One job trains all of them, one after another:

  tests/hosts/hosts.sh run 2 bash -c 'PYTHONPATH=build/release/python build/release/bin/horo run -H h1:2,h2:2 --tag off \\
      python3 bench/wire_training.py --seeds 5'

On one host all are equal, because nothing is rounded there."""

import argparse
import os
import statistics
import sys

import torch
import torch.nn.functional as F

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
sys.path.insert(0, os.path.join(ROOT, "examples"))

import horo.torch as horo  # noqa: E402
import torch_digits as digits  # noqa: E402

WAYS = [("none", False), ("bfloat16", False), ("bfloat16", True), ("float16", False), ("float16", True)]


def train(seed, wire_dtype, error_feedback, data):
    """(loss on the training images, share of right answers on the test images)"""
    (images, labels), test = data
    torch.manual_seed(seed)
    network = digits.Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=digits.LEARNING_RATE, momentum=digits.MOMENTUM)
    optimizer = horo.DistributedOptimizer(optimizer, network.named_parameters(), wire_dtype=wire_dtype,
                                          error_feedback=error_feedback)
    horo.broadcast_parameters(network.state_dict(), root_rank=0)
    digits.train(network, optimizer, images, labels)
    with torch.no_grad():
        loss = F.cross_entropy(network(images), labels).item()
    return loss, digits.accuracy(network, *test)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    horo.init()
    torch.set_num_threads(1)
    data = digits.read_digits(digits.DATA)
    for wire_dtype, error_feedback in WAYS:
        ends = [train(seed, wire_dtype, error_feedback, data) for seed in range(args.seeds)]
        if horo.rank() == 0:
            losses, accuracies = zip(*ends)
            print("| %s%s | %.5f (%.5f..%.5f) | %.2f %% (%.2f..%.2f) |" % (
                wire_dtype, ", error feedback" if error_feedback else "", statistics.mean(losses), min(losses), max(losses),
                100 * statistics.mean(accuracies), 100 * min(accuracies), 100 * max(accuracies)), flush=True)


if __name__ == "__main__":
    main()
