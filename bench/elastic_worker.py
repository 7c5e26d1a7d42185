#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training for bench/elastic: a rank that appends a line to DIRECTORY/HOST.PID after each step.

  elastic_worker.py DIRECTORY SECONDS STATE_MB STEP_MS SETUP_MS

A newcomer takes over STATE_MB of parameters, which change in each step without being reduced. SETUP_MS is the time that the program
needs between init() and its training, for example to open its data. Each line is "time_ns rank size step": the monotonic clock, which the processes of a machine share, and the count of the steps
that the state has seen. It uses names that Horovod has as well, so it measures both."""

import os
import sys
import time

import horovod.torch as hvd
import torch

directory, seconds, megabytes = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
pause, setup = float(sys.argv[4]) / 1e3, float(sys.argv[5]) / 1e3
torch.set_num_threads(1)
begin = time.monotonic_ns()
hvd.init()
model = torch.nn.Linear(64, 64)
model.ballast = torch.nn.Parameter(torch.ones(int(megabytes * 1e6 / 4)), requires_grad=False)
time.sleep(setup)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.001), model.named_parameters())
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
log = open(os.path.join(directory, "%s.%d" % (os.uname().nodename, os.getpid())), "a", buffering=1, encoding="ascii")  # noqa: SIM115
log.write("%d began\n" % begin)
end = float(os.environ.get("HORO_BENCH_END", time.monotonic() + seconds))


@hvd.elastic.run
def train(state):
    while True:
        optimizer.zero_grad()
        model(torch.ones(1, 64)).sum().backward()
        optimizer.step()
        with torch.no_grad():
            model.ballast[:1] += 1
        left = hvd.allreduce(torch.tensor([end - time.monotonic()]), op=hvd.Average, name="left")
        state.step += 1
        log.write("%d %d %d %d\n" % (time.monotonic_ns(), hvd.rank(), hvd.size(), state.step))
        state.commit()
        if left.item() < 0:
            return
        time.sleep(pause)


train(state)
