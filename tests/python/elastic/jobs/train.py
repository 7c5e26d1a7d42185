# SPDX-License-Identifier: Apache-2.0
"""One worker of an elastic training, which writes what it does into a file of its own.

usage: train.py FOLDER GENERATION EPOCHS [WORKER STEP PHASE]...

The training ends with the first epoch, from number EPOCHS on, that ends in GENERATION or later. Worker
number WORKER kills itself in step STEP, in one of four phases: "before" the backward, within it
("backward"), "after" the step, or before it asks for changes ("check"). With the phases "resets", "syncs"
and "enters", STEP is the generation in which it dies: after it got its rank, before the ranks exchange their
states, or after that.
"""

import json
import os
import signal
import sys
import time

import torch

import horo.torch as horo
from horo.torch.elastic import digest_of, generation

SAMPLES = 60
BATCH = 2
RATE = 0.005  # with ten times as much the parameters become NaN, which would be equal on all ranks
MOST_EPOCHS = 400

WORKER = int(os.environ["HORO_WORKER"])
FOLDER, UNTIL, EPOCHS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
DEATHS = {tuple(sys.argv[at : at + 3]) for at in range(4, len(sys.argv), 3)}


def note(what, **facts):
    line = {"what": what, "worker": WORKER, "rank": horo.rank(), "size": horo.size()}
    line["at"] = time.time()
    with open(os.path.join(FOLDER, f"{WORKER}.jsonl"), "a") as file:
        file.write(json.dumps({**line, "generation": generation(), "seconds": time.monotonic(), **facts}) + "\n")


def die(moment, phase):
    if (str(WORKER), str(moment), phase) in DEATHS:
        os.kill(os.getpid(), signal.SIGKILL)


class State(horo.elastic.TorchState):
    def on_reset(self):
        die(generation(), "resets")
        super().on_reset()

    def sync(self):
        die(generation(), "syncs")
        super().sync()


class Training:
    def __init__(self):
        torch.manual_seed(WORKER)  # only the exchange makes the ranks equal
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE, momentum=0.9)
        self.optimizer = horo.DistributedOptimizer(optimizer, self.model.named_parameters())
        self.model[0].weight.register_hook(self.in_backward)
        points = torch.randn(SAMPLES, 4, generator=torch.Generator().manual_seed(1))
        self.data = torch.utils.data.TensorDataset(torch.arange(SAMPLES), points)
        sampler = horo.elastic.ElasticSampler(self.data)
        self.state = State(self.model, self.optimizer, sampler=sampler, epoch=0)
        self.step = 0

    def digest(self):
        return digest_of(list(self.model.parameters())).hex()

    def in_backward(self, _gradient):
        """The gradients of the second layer are on their way already."""
        die(self.step, "backward")

    def train_on(self, samples, points, number):
        self.step = self.optimizer._horo_reducer.steps + 1
        note("tries", step=self.step, samples=samples.tolist(), epoch=self.state.epoch)
        die(self.step, "before")
        self.optimizer.zero_grad()
        loss = (self.model(points) - points.sum(1, keepdim=True)).square().mean()
        loss.backward()
        self.optimizer.step()
        note("did", step=self.step, digest=self.digest(), loss=loss.item())
        die(self.step, "after")
        self.state.sampler.record_batch(number, BATCH)
        die(self.step, "check")
        self.state.check_host_updates()

    def is_over(self):
        """Asked at the end of each epoch, with the same answer on all ranks."""
        return generation() >= UNTIL and self.state.epoch >= EPOCHS

    def run(self, state):
        die(generation(), "enters")
        note("enters", digest=self.digest(), steps=self.optimizer._horo_reducer.steps)
        while state.epoch < MOST_EPOCHS:
            loader = torch.utils.data.DataLoader(self.data, BATCH, sampler=state.sampler)
            for number, (samples, points) in enumerate(loader):
                self.train_on(samples, points, number)
                time.sleep(0.005)
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)
            if self.is_over():
                return
        sys.exit(f"generation {UNTIL} has not come in {MOST_EPOCHS} epochs")


if __name__ == "__main__":
    horo.init()
    training = Training()
    horo.elastic.run(training.run)(training.state)
    note("ends", digest=training.digest())
