# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on handwritten digits, data-parallel, with Keras 3 on any of its backends:

    KERAS_BACKEND=jax PYTHONPATH=build/release/python build/release/bin/horo run -np 2 python3 examples/keras/keras_digits.py

Every rank takes its share of each batch. The result does not depend on the number of ranks, up to rounding.
Three lines, marked (1) to (3), turn the training of one process into a distributed one.
"""

import gzip
import os
import sys

import keras
import numpy

import horo.keras as horo

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "digits.csv.gz")
BATCH = 64  # over all ranks together
EPOCHS = 12
TEST_EVERY = 5  # every fifth image is kept for the test


def read_digits(path):
    """((images, labels) for training, (images, labels) for the test). Pixels are from 0 to 1."""
    with gzip.open(path, "rt") as file:
        rows = numpy.loadtxt(file, delimiter=",", dtype=numpy.int64)
    images = rows[:, :64].reshape(-1, 8, 8, 1).astype("float32") / 16
    test = numpy.arange(len(rows)) % TEST_EVERY == TEST_EVERY - 1
    return (images[~test], rows[~test, 64]), (images[test], rows[test, 64])


def main():
    horo.init()  # (1)
    (images, labels), test = read_digits(sys.argv[1] if len(sys.argv) > 1 else DATA)
    keras.utils.set_random_seed(1998)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(horo.DistributedOptimizer(optimizer), loss, metrics=["accuracy"])  # (2)

    whole = len(images) // BATCH * BATCH
    share = BATCH // horo.size()
    shuffle = numpy.random.default_rng(1998)  # all ranks shuffle in the same way
    for epoch in range(EPOCHS):
        order = shuffle.permutation(len(images))[:whole].reshape(-1, horo.size(), share)
        mine = order[:, horo.rank()].ravel()
        start = [horo.callbacks.BroadcastGlobalVariablesCallback(0)] if epoch == 0 else []  # (3)
        model.fit(images[mine], labels[mine], batch_size=share, shuffle=False, verbose=0, callbacks=start)

    part = slice(horo.rank(), None, horo.size())
    _, right = model.evaluate(test[0][part], test[1][part], verbose=0)
    counts = horo.allreduce([right * len(test[1][part]), len(test[1][part])], op=horo.Sum)
    if horo.rank() == 0:
        print(f"{horo.size()} rank(s): test accuracy {100 * counts[0] / counts[1]:.2f} %")
        print("next: docs/guide/tensorflow.md makes your own training run like this one")


if __name__ == "__main__":
    main()
