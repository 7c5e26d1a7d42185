# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on handwritten digits, data-parallel, with TensorFlow:

    PYTHONPATH=build/release/python build/release/bin/horo run -np 2 python3 examples/tensorflow/tensorflow_digits.py

Every rank takes its share of each batch. Horo averages the gradients over all ranks while others are still
computed. The result does not depend on the number of ranks, up to rounding. Three lines, marked (1) to
(3), turn the training of one process into a distributed one.
"""

import gzip
import os
import sys

import numpy
import tensorflow as tf

import horo.tensorflow as horo

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "digits.csv.gz")
BATCH = 64  # over all ranks together
EPOCHS = 12
LEARNING_RATE = 0.05
MOMENTUM = 0.9
TEST_EVERY = 5  # every fifth image is kept for the test


def read_digits(path):
    """((images, labels) for training, (images, labels) for the test). Pixels are from 0 to 1."""
    with gzip.open(path, "rt") as file:
        rows = numpy.loadtxt(file, delimiter=",", dtype=numpy.int64)
    images = rows[:, :64].reshape(-1, 8, 8, 1).astype("float32") / 16
    test = numpy.arange(len(rows)) % TEST_EVERY == TEST_EVERY - 1
    return (images[~test], rows[~test, 64]), (images[test], rows[test, 64])


class Network(tf.Module):
    def __init__(self):
        super().__init__()
        shapes = {"first": (3, 3, 1, 16), "second": (3, 3, 16, 32), "hidden": (128, 64), "scores": (64, 10)}
        for name, shape in shapes.items():
            scale = (2 / numpy.prod(shape[:-1])) ** 0.5
            setattr(self, name, tf.Variable(tf.random.normal(shape, stddev=scale), name=name))

    def __call__(self, images):
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(images, self.first, 1, "SAME")), 2, 2, "VALID")
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, self.second, 1, "SAME")), 2, 2, "VALID")
        return tf.nn.relu(tf.reshape(x, [-1, 128]) @ self.hidden) @ self.scores


def main():
    horo.init()  # (1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.random.set_seed(1998)
    (images, labels), test = read_digits(sys.argv[1] if len(sys.argv) > 1 else DATA)

    network = Network()
    weights = network.trainable_variables
    speeds = [tf.Variable(tf.zeros_like(one)) for one in weights]
    horo.broadcast_variables(weights, root_rank=0)  # (2): all start equal

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, network(images))
            loss = tf.reduce_mean(losses)
        tape = horo.DistributedGradientTape(tape)  # (3)
        for weight, speed, gradient in zip(weights, speeds, tape.gradient(loss, weights)):
            speed.assign(MOMENTUM * speed + gradient)
            weight.assign_sub(LEARNING_RATE * speed)

    shuffle = numpy.random.default_rng(1998)  # all ranks shuffle in the same way
    for _ in range(EPOCHS):
        order = shuffle.permutation(len(images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            mine = order[start : start + BATCH][horo.rank() :: horo.size()]
            step(tf.constant(images[mine]), tf.constant(labels[mine]))

    part = slice(horo.rank(), None, horo.size())
    right = tf.reduce_sum(tf.cast(tf.argmax(network(test[0][part]), 1) == test[1][part], tf.int64))
    right = horo.allreduce(right, op=horo.Sum, name="right")
    if horo.rank() == 0:
        print(f"{horo.size()} rank(s): test accuracy {100 * int(right) / len(test[1]):.2f} %")
        print("next: docs/guide/tensorflow.md makes your own training run like this one")


if __name__ == "__main__":
    main()
