# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits, data-parallel, with JAX:

    PYTHONPATH=build/release/python build/release/bin/horo run -np 2 python3 examples/jax/digits.py

Every rank takes its share of each batch. The gradients are averaged inside the compiled step. The
result does not depend on the number of ranks, up to rounding. Lines marked (1) to (4) turn the
training of one process into a distributed one. It needs jax and numpy; an optimizer of optax
becomes distributed by horo.DistributedOptimizer.
"""

import functools
import gzip
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy

import horo.jax as horo

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "digits.csv.gz")
BATCH = 64  # over all ranks together
EPOCHS = 12
LEARNING_RATE = 0.1
MOMENTUM = 0.9
TEST_EVERY = 5  # every fifth image is kept for the test


def read_digits(path):
    """((images, labels) for training, (images, labels) for the test). Pixels are from 0 to 1."""
    with gzip.open(path, "rt") as file:
        rows = numpy.array([[int(value) for value in line.split(",")] for line in file])
    images, labels = rows[:, :64].astype("float32") / 16, rows[:, 64]
    test = numpy.arange(len(rows)) % TEST_EVERY == TEST_EVERY - 1
    return (images[~test], labels[~test]), (images[test], labels[test])


def new_parameters(seed, sizes=(64, 64, 10)):
    keys = jax.random.split(jax.random.key(seed), len(sizes) - 1)
    return [
        {"w": jax.random.normal(key, (n, m)) * (2 / n) ** 0.5, "b": jnp.zeros(m)}
        for key, n, m in zip(keys, sizes, sizes[1:])
    ]


def scores(parameters, images):
    *hidden, last = parameters
    for layer in hidden:
        images = jax.nn.relu(images @ layer["w"] + layer["b"])
    return images @ last["w"] + last["b"]


def loss(parameters, images, labels):
    logs = jax.nn.log_softmax(scores(parameters, images))
    return -jnp.take_along_axis(logs, labels[:, None], axis=1).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(parameters, speeds, images, labels):
    gradients = horo.grad(loss)(parameters, images, labels)  # (2): averaged over the ranks
    speeds = jax.tree_util.tree_map(lambda v, g: MOMENTUM * v + g, speeds, gradients)
    parameters = jax.tree_util.tree_map(lambda p, v: p - LEARNING_RATE * v, parameters, speeds)
    return parameters, speeds


def train(parameters, images, labels):
    shuffle = numpy.random.default_rng(1998)  # all ranks shuffle in the same way
    speeds = jax.tree_util.tree_map(jnp.zeros_like, parameters)
    for _ in range(EPOCHS):
        order = shuffle.permutation(len(images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            mine = order[start : start + BATCH][horo.rank() :: horo.size()]  # (4)
            parameters, speeds = step(parameters, speeds, images[mine], labels[mine])
    return jax.block_until_ready(parameters)


def accuracy(parameters, images, labels):
    """The share of right answers. Each rank tests its part of the images."""
    mine = slice(horo.rank(), None, horo.size())
    right = (scores(parameters, images[mine]).argmax(1) == labels[mine]).sum()
    return horo.allreduce(right, op=horo.Sum, name="right").item() / len(images)


def main():
    horo.init()  # (1)
    (images, labels), test = read_digits(sys.argv[1] if len(sys.argv) > 1 else DATA)
    parameters = horo.broadcast_parameters(new_parameters(horo.rank()), root_rank=0)  # (3)

    begin = time.perf_counter()
    parameters = train(parameters, images, labels)
    seconds = time.perf_counter() - begin

    right = accuracy(parameters, *test)
    if horo.rank() == 0:
        rate = len(images) // BATCH * BATCH * EPOCHS / seconds
        print(f"{horo.size()} rank(s): test accuracy {100 * right:.2f} %, {rate:.0f} images/s")


if __name__ == "__main__":
    main()
