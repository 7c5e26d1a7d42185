# SPDX-License-Identifier: Apache-2.0
"""A training of 30 steps, in whose tenth step rank 1 of the first generation is killed. Each step adds 1.

usage: elastic_state.py variables|model      what the state holds"""

import os
import signal
import sys

import tensorflow as tf

import horo.tensorflow as horo

STEPS = 30
horo.init()
if sys.argv[1] == "variables":
    weight = tf.Variable(tf.zeros([4, 1]))
    state = horo.elastic.TensorFlowState([weight], step=0)
    apply = weight.assign_sub
else:
    import keras

    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([keras.layers.Input((4,)), layer])
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build(model.trainable_variables)
    weight = layer.kernel
    state = horo.elastic.TensorFlowKerasState(model, optimizer, step=0)

    def apply(gradient):
        optimizer.apply_gradients([(gradient, weight)])


@tf.function
def step():
    apply(horo.allreduce(-tf.ones([4, 1]), name="gradient"))


@horo.elastic.run
def train(state):
    while state.step < STEPS:
        if state.step == 10 and horo.elastic.generation() == 1 and horo.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        step()
        state.step += 1
        if state.step % 5 == 0:
            state.commit()


train(state)
values = tf.convert_to_tensor(weight).numpy().tolist()
assert values == [[float(STEPS)]] * 4, values
if sys.argv[1] == "model":
    assert int(optimizer.iterations) == STEPS, optimizer.iterations
print(f"done in generation {horo.elastic.generation()} of {horo.size()} ranks", flush=True)
