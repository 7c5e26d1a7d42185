# SPDX-License-Identifier: Apache-2.0
"""A rank of a real training, for bench/tuned: trains for a number of steps that fill --seconds, and prints how long a step took, or
trains until it is stopped. The models are those of examples/: the digits, the transformer on text, and ResNet-50 on made-up images."""

import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
sys.path.insert(0, os.path.join(ROOT, "examples"))

import horo.torch as horo  # noqa: E402
import resnet50_model  # noqa: E402
import torch_digits  # noqa: E402
import torch_text  # noqa: E402

LEAST_STEPS = 6
MOST_STEPS = 5000


def digits():
    """(network, a function that computes the loss of one step)"""
    (images, labels), _test = torch_digits.read_digits(torch_digits.DATA)
    network = torch_digits.Network()
    generator = torch.Generator().manual_seed(1998)

    def loss():
        mine = torch.randint(len(images), (torch_digits.BATCH,), generator=generator)[horo.rank()::horo.size()]
        return F.cross_entropy(network(images[mine]), labels[mine])

    return network, loss


def transformer():
    with open(torch_text.TEXT, encoding="utf-8") as file:
        content = file.read()
    alphabet = sorted(set(content))
    text = torch.tensor([alphabet.index(letter) for letter in content])
    network = torch_text.Transformer(len(alphabet))
    generator = torch.Generator().manual_seed(1609)

    def loss():
        seen, follows = torch_text.pieces(text, generator)
        mine = slice(horo.rank(), None, horo.size())
        return F.cross_entropy(network(seen[mine]).flatten(0, 1), follows[mine].flatten())

    return network, loss


def resnet50():
    network = resnet50_model.ResNet50()
    images, labels = torch.randn(4, 3, 64, 64), torch.randint(resnet50_model.CLASSES, (4,))
    return network, lambda: F.cross_entropy(network(images), labels)


MODELS = {"digits": digits, "transformer": transformer, "resnet50": resnet50}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), required=True)
    parser.add_argument("--seconds", type=float, help="time of the measured steps; by default the training goes on until it is stopped")
    parser.add_argument("--warm-up", type=int, default=5, help="steps before the measured ones (%(default)s)")
    args = parser.parse_args()
    horo.init()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    network, loss = MODELS[args.model]()
    optimizer = horo.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.01), network.named_parameters())
    horo.broadcast_parameters(network.state_dict(), root_rank=0)

    def step():
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        return time.perf_counter() - begin

    while args.seconds is None:
        step()
    last = [step() for _ in range(args.warm_up)][-1]
    # All ranks take as many steps.
    wanted = horo.allreduce(torch.tensor(args.seconds / last), name="wanted").item()
    steps = [step() for _ in range(max(LEAST_STEPS, min(MOST_STEPS, round(wanted))))]
    if horo.rank() == 0:
        print(json.dumps({"model": args.model, "steps": len(steps), "median_ms": 1e3 * statistics.median(steps),
                          "mean_ms": 1e3 * statistics.mean(steps)}), flush=True)


if __name__ == "__main__":
    main()
