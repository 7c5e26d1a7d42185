# SPDX-License-Identifier: Apache-2.0
"""A training whose worker 2 comes later, and prepares itself while the others train.

usage: joins.py FOLDER loss|spare

loss: worker 1 dies in step 3. Worker 2 comes for it and waits, before its training begins, until
worker 0 has made 20 more steps. spare: worker 2 is a spare, and worker 1 dies once it is ready.
"""

import json
import os
import signal
import sys
import time

import torch

import horo.torch as horo
from horo.torch.elastic import generation

WORKER = int(os.environ["HORO_WORKER"])
FOLDER, HOW = sys.argv[1], sys.argv[2]
LIMIT_S = 240
TOGETHER = 10  # steps with the new rank


def path(name):
    return os.path.join(FOLDER, name)


def steps_of_worker_0():
    try:
        with open(path("steps")) as file:
            return file.read().count("\n")
    except FileNotFoundError:
        return 0


def wait_for_steps(count):
    until = time.monotonic() + LIMIT_S
    while steps_of_worker_0() < count:
        assert time.monotonic() < until, "worker 0 stands still until this worker joins"
        time.sleep(0.01)


def must_die(step):
    return WORKER == 1 and (step == 3 if HOW == "loss" else os.path.exists(path("ready")))


horo.init()
planned = [horo.rank(), horo.size(), generation(), horo.is_initialized()]
torch.manual_seed(WORKER)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
sampler = horo.elastic.ElasticSampler(range(1000))
state = horo.elastic.TorchState(model, optimizer, sampler=sampler, step=0)
renewed = []
state.register_reset_callbacks([lambda: renewed.append(horo.size())])
if WORKER == 2:
    if HOW == "loss":
        wait_for_steps(steps_of_worker_0() + 20)
    open(path("ready"), "w").close()


@horo.elastic.run
def train(state):
    together = 0
    while together < TOGETHER:
        if must_die(state.step + 1):
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.ones(1, 4) * (WORKER + 1)).sum().backward()
        optimizer.step()
        state.step += 1
        if WORKER == 0:
            with open(path("steps"), "a") as file:
                file.write("step\n")
        newest = horo.allreduce(torch.tensor([WORKER]), op=horo.Max, name="newest")
        together += int(newest) == 2
        state.check_host_updates()


train(state)
told = {
    "worker": WORKER,
    "planned": planned,
    "place": [horo.rank(), horo.size(), generation()],
    "renewed": renewed,
    "sampled": [sampler.rank, sampler.num_replicas],
    "weights": model.weight.tolist(),
}
with open(path(f"{WORKER}.json"), "w") as file:
    json.dump(told, file)
