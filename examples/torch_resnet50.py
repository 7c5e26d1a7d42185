# SPDX-License-Identifier: Apache-2.0
"""Measures how fast ResNet-50 trains on random images, data-parallel, with PyTorch:

    PYTHONPATH=build/release/python build/release/bin/horo run -np 2 python3 examples/torch_resnet50.py

Nothing is downloaded, and nothing is learned. --local trains without communication: what is
between the two rates is what communication costs. --help lists what can be varied.
"""

import argparse
import time

import torch
import torch.nn.functional as F

import horo.torch as horo
from resnet50_model import CLASSES, ResNet50


def options():
    parser = argparse.ArgumentParser(description="How fast ResNet-50 trains on made-up images.")
    parser.add_argument("--image", type=int, default=64, help="pixels a side (%(default)s)")
    parser.add_argument("--batch", type=int, default=4, help="images per rank (%(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="in each round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="%(default)s")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before (%(default)s)")
    parser.add_argument("--fp16", action="store_true", help="reduce gradients in 16 bits")
    parser.add_argument("--shared", action="store_true", help="gradients in shared memory")
    parser.add_argument("--local", action="store_true", help="without communication")
    return parser.parse_args()


def main():
    args = options()
    horo.init()
    torch.set_num_threads(1)  # one core per rank
    torch.manual_seed(horo.rank())
    model = ResNet50()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if not args.local:
        optimizer = horo.DistributedOptimizer(
            optimizer,
            model.named_parameters(),
            compression=horo.Compression.fp16 if args.fp16 else horo.Compression.none,
            gradients_in_shared_memory=args.shared,
        )
        horo.broadcast_parameters(model.state_dict(), root_rank=0)
    images = torch.randn(args.batch, 3, args.image, args.image)
    labels = torch.randint(CLASSES, (args.batch,))

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=not args.shared)
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()

    train(args.warm_up)
    rates = []
    for _ in range(args.rounds):
        horo.barrier()
        begin = time.perf_counter()
        train(args.steps)
        rates.append(args.batch * args.steps / (time.perf_counter() - begin))
    total = horo.allreduce(torch.tensor(rates), op=horo.Sum, name="rates")
    if horo.rank() == 0:
        middle = total.median().item()
        print(
            f"{horo.size()} rank(s): {middle:.1f} images/s, "
            f"{total.min().item():.1f} to {total.max().item():.1f} in {args.rounds} round(s)"
        )


if __name__ == "__main__":
    main()
