# SPDX-License-Identifier: Apache-2.0
"""train.py in double precision, until FOLDER/stop exists. A file FOLDER/PHASE.WORKER with the number of a signal
lets the worker send itself this signal when it comes to the phase. Phases: as in train.py.

usage: train_until_told.py FOLDER 0 0
"""

import faulthandler
import os
import signal

import torch

import horo.torch as horo
import train


def die_when_told(_moment, phase):
    path = os.path.join(train.FOLDER, f"{phase}.{train.WORKER}")
    try:
        with open(path) as file:
            number = int(file.read())
        os.remove(path)
    except OSError:
        return
    os.kill(os.getpid(), number)


class TrainingUntilTold(train.Training):
    def is_over(self):
        told = torch.tensor([float(os.path.exists(os.path.join(train.FOLDER, "stop")))])
        return horo.allreduce(told, op=horo.Max, name="told").item() > 0


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    train.MOST_EPOCHS = 10**9
    train.die = die_when_told
    horo.init()
    training = TrainingUntilTold()
    horo.elastic.run(training.run)(training.state)
    parameters = torch.cat([one.detach().flatten() for one in training.model.parameters()])
    train.note("ends", digest=training.digest(), parameters=parameters.tolist())
