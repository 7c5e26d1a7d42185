# SPDX-License-Identifier: Apache-2.0
"""Trains on handwritten digits with ranks that come and go. Start it, and kill any of its ranks:

    PYTHONPATH=build/release/python build/release/bin/horo run --min-np 1 -np 3 --slot-restarts 9 \\
        python3 examples/elastic_torch.py
    kill -9 PID             # in another terminal; the example prints the ids

It prints each step with its loss, and the generation of the job, which grows when ranks come or go.
With --deaths N the example kills N of its ranks by itself. The others continue with the step in which
a rank was lost: no step is missing, and none counts twice. Four lines, marked (1) to (4), turn a
distributed training into an elastic one.

With a fifth line, marked (5), it outlives the loss of the whole job. Here all ranks are killed three
times, at random steps, and each time the launcher starts the job again:

    horo run --min-np 1 -np 3 --max-restarts 9 python3 examples/elastic_torch.py --save-to FOLDER --losses 3

Kill `horo run` itself, and start the same command once more: the training goes on where it was.
"""

import argparse
import os
import random
import signal

import torch
import torch.nn.functional as F

import horo.torch as horo
from horo.torch.elastic import generation
from torch_digits import DATA, Network, accuracy, read_digits

BATCH = 16  # per rank


def arguments():
    parser = argparse.ArgumentParser(description="an elastic training")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--deaths", type=int, default=0, help="how many ranks kill themselves")
    parser.add_argument("--save-to", metavar="FOLDER", help="save the state there, every 10 steps")
    parser.add_argument("--losses", type=int, default=0, help="how often all ranks kill themselves")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="print no steps")
    return parser.parse_args()


def doomed(options):
    """The step in which this worker kills itself, or None. Each worker's number is its own for the
    whole job, so a worker that replaces a dead one has another fate."""
    chance = random.Random(options.seed)
    started = int(os.environ.get("HORO_RESTART_COUNT", 0))
    if options.losses:  # all ranks of an attempt have the same fate
        losses = sorted(chance.sample(range(20, 60 * options.losses), options.losses))
        return losses[started] if started < options.losses else None
    worker = int(os.environ.get("HORO_WORKER", -1))
    fates = {number: chance.randrange(10, 60) for number in range(options.deaths)}
    return fates.get(worker)


def one_step(state, images, labels, end):
    state.optimizer.zero_grad()
    loss = F.cross_entropy(state.network(images), labels)
    loss.backward()
    if state.step + 1 == end:
        os.kill(os.getpid(), signal.SIGKILL)
    state.optimizer.step()  # a loss is noticed here, and the parameters stay as they are
    state.step += 1
    return loss.item()


@horo.elastic.run  # (1): calls train() again, in the same process, when ranks have come or gone
def train(state, data, options, end):
    print(f"generation {generation()}: rank {horo.rank()} of {horo.size()} is process {os.getpid()}")
    while state.epoch < options.epochs:
        loader = torch.utils.data.DataLoader(data, BATCH, sampler=state.sampler)
        for number, (images, labels) in enumerate(loader):
            loss = one_step(state, images, labels, end)
            state.sampler.record_batch(number, BATCH)  # (2): these images are done
            if horo.rank() == 0 and not options.quiet:
                print(f"generation {generation()}, step {state.step}: loss {loss:.3f}", flush=True)
            state.check_host_updates()  # (3): lets new ranks in
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)


def main():
    options = arguments()
    horo.init()
    torch.set_num_threads(1)
    torch.manual_seed(1998)
    (images, labels), test = read_digits(DATA)
    data = torch.utils.data.TensorDataset(images, labels)
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    optimizer = horo.DistributedOptimizer(optimizer, network.named_parameters())
    state = horo.elastic.TorchState(  # (4): all that must survive
        network=network,
        optimizer=optimizer,
        sampler=horo.elastic.ElasticSampler(data),
        epoch=0,
        step=0,
    )
    if options.save_to:
        state.save_to(options.save_to, every=10)  # (5): lets the training resume in another job
    train(state, data, options, doomed(options))
    right = accuracy(network, *test)
    if horo.rank() == 0:
        print(
            f"generation {generation()}, {horo.size()} rank(s): test accuracy {100 * right:.2f} %, "
            f"{state.step} steps in {state.epoch} epochs"
        )


if __name__ == "__main__":
    main()
