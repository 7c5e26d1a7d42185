# SPDX-License-Identifier: Apache-2.0
"""A gradient fails on one rank while the others reduce theirs."""

import tensorflow as tf

import horo.tensorflow as horo
from horo.tensorflow._errors import translated

horo.init()
weights = [tf.Variable(tf.ones([5])), tf.Variable(tf.ones([7]))]


@tf.custom_gradient
def checked(x):
    def back(gradient):
        bad = tf.constant(horo.rank() == 1)
        with tf.control_dependencies([tf.debugging.assert_equal(bad, False, "no gradient here")]):
            return tf.identity(gradient)

    return tf.identity(x), back


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(checked(weights[0])) + tf.reduce_sum(weights[1])
    return horo.DistributedGradientTape(tape).gradient(loss, weights)


try:
    with translated():
        step()
except horo.HoroError as error:
    print(f"rank {horo.rank()} was told: {type(error).__name__}: {error}", flush=True)
    raise
