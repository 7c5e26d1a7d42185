# SPDX-License-Identifier: Apache-2.0
"""An elastic training as programs for Horovod are written: it knows nothing of Horo. Like them it
records a batch before the optimizer's step, commits every few batches, and scales the learning rate.

usage: as_for_horovod.py FOLDER EPOCHS [WORKER BATCH]     (worker WORKER dies in that batch of epoch 1)
"""

import json
import os
import signal
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import horovod.torch as hvd

BATCH, COMMIT_EVERY = 3, 4
FOLDER, EPOCHS = sys.argv[1], int(sys.argv[2])
DEATH = sys.argv[3:]


def scale_learning_rate():
    for group in optimizer.param_groups:
        group["lr"] = 0.01 * hvd.size()


@hvd.elastic.run
def train(state):
    while state.epoch < EPOCHS:
        loader = DataLoader(data, batch_size=BATCH, sampler=state.sampler)
        for number, (x, y) in enumerate(loader):
            state.batch = number
            if number % COMMIT_EVERY == 0:
                state.commit()
            else:
                state.check_host_updates()
            state.sampler.record_batch(number, BATCH)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if state.epoch == 1 and DEATH == [os.environ.get("HORO_WORKER"), str(number)]:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
        state.epoch += 1
        state.batch = 0
        state.sampler.set_epoch(state.epoch)
        state.commit()
    return loss.item()


hvd.init()
torch.manual_seed(3)
points = torch.randn(90, 2)
data = TensorDataset(points, (points.sum(1) > 0).long())
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size(), momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(
    model=model, optimizer=optimizer, sampler=hvd.elastic.ElasticSampler(data), epoch=0, batch=0
)
state.register_reset_callbacks([scale_learning_rate])
loss = train(state)
told = {
    "rank": hvd.rank(),
    "size": hvd.size(),
    "environment": [int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])],
    "loss": loss,
    "rate": optimizer.param_groups[0]["lr"],
    "weights": [parameter.tolist() for parameter in model.parameters()],
}
with open(os.path.join(FOLDER, f"{hvd.rank()}.json"), "w") as file:
    json.dump(told, file)
