# SPDX-License-Identifier: Apache-2.0
"""Two models, each with an optimizer of its own, that are trained in turn.

usage: two_optimizers.py ROUNDS CRITICS [WORKER ROUND PHASE]

In each round the first optimizer does CRITICS steps, and the second one does one. Worker WORKER kills itself
in round ROUND: before the backward of the "first" optimizer's last step, or of the "second" one's. All ranks have the same
samples, so one rank comes to the same parameters as two. It prints a digest of the parameters.
"""

import os
import signal
import sys

import torch

import horo.torch as horo
from horo.torch.elastic import digest_of

ROUNDS, CRITICS = int(sys.argv[1]), int(sys.argv[2])
DEATH = sys.argv[3:6]


def trained(seed):
    torch.manual_seed(seed)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    named = [(f"{seed}.{name}", parameter) for name, parameter in model.named_parameters()]
    return model, horo.DistributedOptimizer(optimizer, named)


def step(optimizer, loss, round_, phase):
    optimizer.zero_grad()
    if DEATH == [os.environ["HORO_WORKER"], str(round_), phase]:
        os.kill(os.getpid(), signal.SIGKILL)
    loss.backward()
    optimizer.step()


@horo.elastic.run
def train(state):
    while state.round < ROUNDS:
        points = torch.randn(8, 4, generator=torch.Generator().manual_seed(state.round))
        for critic in range(CRITICS):
            distance = (state.first(points) - state.second(points).detach()).square().mean()
            step(state.first_optimizer, distance, state.round, "first" if critic == CRITICS - 1 else "")
        gap = (state.second(points) - points.sum(1, keepdim=True) - state.first(points).detach()).square().mean()
        step(state.second_optimizer, gap, state.round, "second")
        state.round += 1
        state.check_host_updates()


horo.init()
first, first_optimizer = trained(1)
second, second_optimizer = trained(2)
state = horo.elastic.TorchState(
    first=first,
    first_optimizer=first_optimizer,
    second=second,
    second_optimizer=second_optimizer,
    round=0,
)
train(state)
steps = [one._horo_reducer.steps for one in (first_optimizer, second_optimizer)]
parameters = [*first.parameters(), *second.parameters()]
print("digest", digest_of(parameters).hex(), "steps", *steps, flush=True)
