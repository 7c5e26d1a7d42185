# SPDX-License-Identifier: Apache-2.0
"""TensorFlow and JAX in one process: both reduce under the same names, in threads of their own, and an error in
one leaves the other as it was."""

import threading

import jax
import jax.numpy as jnp
import numpy
import tensorflow as tf

import horo.jax
import horo.numpy
import horo.tensorflow

horo.tensorflow.init()
horo.jax.init()  # the job is the same, whoever has started it
rank, size = horo.jax.rank(), horo.tensorflow.size()
total = size * (size + 1) / 2
mine = numpy.full(1000, rank + 1.0, "float32")
wrong = []


@tf.function
def in_tensorflow(x):
    return [horo.tensorflow.allreduce(x * (i + 1.0), op=horo.tensorflow.Sum, name=f"same.{i}") for i in range(10)]


@jax.jit
def in_jax(x):
    return [horo.jax.allreduce(x * (i + 1.0), op=horo.jax.Sum, name=f"same.{i}") for i in range(10)]


def in_numpy(x):
    return [horo.numpy.allreduce(x * (i + 1.0), op=horo.numpy.Sum, name=f"same.{i}") for i in range(10)]


def run(function, given):
    for _ in range(20):
        for index, found in enumerate(function(given)):
            if not numpy.array_equal(numpy.asarray(found), numpy.full(1000, total * (index + 1))):
                wrong.append((function, index, found))


def check_threads():
    every = [(in_tensorflow, tf.constant(mine)), (in_jax, jnp.asarray(mine)), (in_numpy, mine)]
    for function, given in every:  # traced in one order on all ranks
        run(function, given)
    threads = [threading.Thread(target=run, args=one) for one in (every if rank % 2 else every[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:2]


def check_an_error_in_one():
    differs = numpy.ones(2 + rank, "float32")
    calls = [
        lambda: horo.tensorflow.allreduce(tf.constant(differs), name="differs"),
        lambda: jax.block_until_ready(jax.jit(lambda x: horo.jax.allreduce(x, name="differs"))(jnp.asarray(differs))),
        lambda: horo.numpy.allreduce(differs, name="differs"),
    ]
    for call in calls:
        try:
            call()
            raise SystemExit("the ranks differ, and nothing was said")
        except (horo.numpy.MismatchError, jax.errors.JaxRuntimeError) as error:
            assert "shape" in str(error), error
        run(in_tensorflow, tf.constant(mine))
        run(in_jax, jnp.asarray(mine))
    assert not wrong, wrong[:2]


def check_arrays_of_the_other():
    """An array of one framework in a function of the other is converted, or refused by a sentence."""
    found = horo.tensorflow.allreduce(jnp.asarray(mine), op=horo.tensorflow.Sum)
    assert isinstance(found, tf.Tensor) and float(found[0]) == total
    found = horo.jax.allreduce(tf.constant(mine), op=horo.jax.Sum)
    assert isinstance(found, jax.Array) and float(found[0]) == total


check_threads()
check_an_error_in_one()
check_arrays_of_the_other()
horo.tensorflow.shutdown()
print("rank", rank, "all right", flush=True)
