# SPDX-License-Identifier: Apache-2.0
"""A training that saves its state in files, and what can happen to it.

usage: saves.py FOLDER DIRECTORY EPOCHS EVERY [WHAT STEP]

It writes what it does into a file of FOLDER for each process, saves after every EVERY-th step in
DIRECTORY, and ends after EPOCHS epochs. In step STEP of an attempt whose FOLDER/happened does not exist,
WHAT happens:

  all       all ranks are killed
  launcher  `horo run` is killed
  writing   rank 0 is killed by its writing thread, in the middle of the file of this step or a later one
  wait      nothing; the ranks wait for their end
"""

import json
import os
import signal
import sys
import threading
import time

import torch

import horo.torch as horo
from horo._elastic import saved_file
from horo.torch.elastic import digest_of, generation

SAMPLES = 60
BATCH = 2
FOLDER, DIRECTORY, EPOCHS, EVERY = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
WHAT, STEP = (sys.argv[5], int(sys.argv[6])) if len(sys.argv) > 5 else (None, 0)
HAPPENED = os.path.join(FOLDER, "happened")


def note(what, **facts):
    line = {"what": what, "rank": horo.rank(), "size": horo.size(), "pid": os.getpid()}
    line["attempt"] = int(os.environ.get("HORO_RESTART_COUNT", "0"))
    with open(os.path.join(FOLDER, f"{os.getpid()}.jsonl"), "a") as file:
        file.write(json.dumps({**line, "generation": generation(), **facts}) + "\n")


def happen():
    """True once."""
    try:
        os.close(os.open(HAPPENED, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def launcher():
    """The process id of `horo run`, which the test has written."""
    with open(os.path.join(FOLDER, "launcher")) as file:
        return int(file.read())


def strike(step, pids):
    if step != STEP or os.path.exists(HAPPENED):
        return
    if WHAT == "all" and horo.rank() == 0 and happen():
        others = [pid for pid in pids if pid != os.getpid()]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)  # so that none goes on when another one is gone
        for pid in (*others, os.getpid()):
            os.kill(pid, signal.SIGKILL)
    if WHAT == "launcher" and horo.rank() == 0 and happen():
        os.kill(launcher(), signal.SIGKILL)
    if WHAT in ("launcher", "all", "wait"):
        note("waits")
        threading.Event().wait()


def die_while_writing():
    """A write of a file ends in the middle, and the process with it."""
    write_all = saved_file.write_all

    def write(fd, data):
        if steps_done() >= STEP and len(data) > 200 and happen():
            os.write(fd, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        write_all(fd, data)

    saved_file.write_all = write


class Training:
    def __init__(self):
        torch.manual_seed(os.getpid())  # only files and the exchange make the ranks equal
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.fill_(0.05)  # without a file the training begins as any other
                parameter.view(-1)[0] = 0.1
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.005, momentum=0.9)
        self.optimizer = horo.DistributedOptimizer(optimizer, self.model.named_parameters())
        points = torch.randn(SAMPLES, 4, generator=torch.Generator().manual_seed(1))
        self.data = torch.utils.data.TensorDataset(torch.arange(SAMPLES), points)
        sampler = horo.elastic.ElasticSampler(self.data)
        self.state = horo.elastic.TorchState(self.model, self.optimizer, sampler=sampler, epoch=0)
        self.state.save_to(DIRECTORY, every=EVERY, keep=3)

    def digest(self):
        return digest_of(list(self.model.parameters())).hex()

    def steps(self):
        return self.optimizer._horo_reducer.steps

    def train_on(self, samples, points):
        strike(self.steps() + 1, self.pids)
        self.optimizer.zero_grad()
        (self.model(points) - points.sum(1, keepdim=True)).square().mean().backward()
        self.optimizer.step()
        note("did", step=self.steps(), epoch=self.state.epoch, samples=samples.tolist(), digest=self.digest())
        self.state.sampler.record_batch(0, BATCH)
        self.state.check_host_updates()

    def run(self, state):
        note("begins", step=self.steps(), digest=self.digest())
        self.pids = horo.allgather(torch.tensor([os.getpid()]), name="pids").tolist()
        while state.epoch < EPOCHS:
            for samples, points in torch.utils.data.DataLoader(self.data, BATCH, sampler=state.sampler):
                self.train_on(samples, points)
                time.sleep(0.002)
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)
        note("ends", step=self.steps(), digest=self.digest())


if __name__ == "__main__":
    horo.init()
    training = Training()
    steps_done = training.steps
    if WHAT == "writing":
        die_while_writing()
    horo.elastic.run(training.run)(training.state)
