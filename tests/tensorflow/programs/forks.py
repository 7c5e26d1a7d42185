# SPDX-License-Identifier: Apache-2.0
"""A training whose batches come from forked children, which make them with numpy."""

import multiprocessing

import numpy
import tensorflow as tf

import horo.tensorflow as horo

horo.init()


def batches():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        yield from pool.imap(numpy.ones, [8] * 20)


@tf.function
def step(batch):
    return horo.allreduce(batch, name="batch")


data = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec([8], tf.float64))
count = 0
for batch in data:
    count += 1
    assert step(batch).numpy().tolist() == [1.0] * 8
assert count == 20
print("all right", flush=True)
