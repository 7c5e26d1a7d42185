# SPDX-License-Identifier: Apache-2.0
"""An elastic Keras training. The rank in the place of rank 1 of the first generation kills itself once.

usage: elastic_fit.py FOLDER"""

import os
import signal
import sys

import keras
import numpy

import horo.keras as horo

folder = sys.argv[1]
horo.init()
keras.utils.set_random_seed(1)
x = numpy.random.default_rng(1).normal(size=(32, 4)).astype("float32")
y = x.sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile(horo.DistributedOptimizer(keras.optimizers.SGD(0.05, momentum=0.9)), "mse")
state = horo.elastic.KerasState(model, batch=0, epoch=0)


class Dies(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        mark = os.path.join(folder, "died")
        if horo.rank() == 1 and state.epoch == 1 and batch == 2 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)


@horo.elastic.run
def train(state):
    model.fit(
        x,
        y,
        batch_size=4,
        epochs=3,
        initial_epoch=state.epoch,
        shuffle=False,
        verbose=0,
        callbacks=[
            Dies(),
            horo.elastic.UpdateBatchStateCallback(state),
            horo.elastic.UpdateEpochStateCallback(state),
            horo.elastic.CommitStateCallback(state, batches_per_commit=4),
        ],
    )
    return float(model.get_weights()[0].sum())


result = train(state)
print(f"done epoch {state.epoch} of size {horo.size()} result {result:.6f}", flush=True)
