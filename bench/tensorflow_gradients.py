# SPDX-License-Identifier: Apache-2.0
"""Compares a step of DistributedGradientTape over ResNet-50's 161 gradients with the C ABI's time for them.

    horo run -np 2 PYTHON bench/tensorflow_gradients.py [--rounds N] [--steps N]

PYTHON has TensorFlow. Three kinds of steps take turns in one job: `function` computes gradients in a tf.function and
reduces them, `compute` computes them only, and `c-abi` submits as many arrays of the same sizes and waits for them, by two
calls of the C ABI. Rank 0 prints the median of each kind in ms and, for each round, (function - compute) / c-abi and
function / c-abi.
"""

import argparse
import ctypes
import statistics
import time

import numpy
import tensorflow as tf

import horo.tensorflow as horo
from horo import _native


def convolutions():
    """(inputs, outputs, kernel) of all convolutions of ResNet-50."""
    yield 3, 64, 7
    inputs = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for index in range(count):
            yield inputs, width, 1
            yield width, width, 3
            yield width, 4 * width, 1
            if index == 0:
                yield inputs, 4 * width, 1
            inputs = 4 * width


def shapes():
    found = []
    for inputs, outputs, kernel in convolutions():
        found += [(kernel, kernel, inputs, outputs), (outputs,), (outputs,)]
    return [*found, (2048, 1000), (1000,)]


class CAbi:
    """Reduces arrays in place, by one call to submit all and one to wait for all."""

    def __init__(self, sizes):
        self.arrays = [numpy.ones(size, numpy.float32) for size in sizes]
        count = len(self.arrays)
        self.tensors, self.ops = (ctypes.c_uint64 * count)(), (ctypes.c_uint64 * count)()
        self.buffers = (ctypes.c_void_p * count)(*[one.ctypes.data for one in self.arrays])
        for index, one in enumerate(self.arrays):
            shape = (ctypes.c_int64 * 1)(one.size)
            description = _native.TensorDesc(
                size=ctypes.sizeof(_native.TensorDesc),
                name=f"bench.{index}".encode(),
                dtype=_native.DTYPES["float32"],
                ndim=1,
                shape=shape,
                prescale=1.0,
                postscale=1.0,
            )
            address = ctypes.addressof(self.tensors) + 8 * index
            assert _native.fast.horo_declare(description, address) == 0
        self.library = ctypes.CDLL(_native.path)

    def __call__(self):
        count = ctypes.c_size_t(len(self.arrays))
        call = self.library.horo_submit_many
        assert call(self.tensors, self.buffers, self.buffers, count, self.ops, None) == 0
        assert self.library.horo_wait_all(self.ops, count, ctypes.c_int64(-1)) == 0


def steps_of_tensorflow(every):
    variables = [tf.Variable(tf.ones(shape)) for shape in every]
    factor = tf.Variable(1.0)

    def step(wrap):
        @tf.function
        def function():
            with tf.GradientTape() as tape:
                loss = tf.add_n([tf.reduce_sum(one) * factor for one in variables])
            gradients = wrap(tape).gradient(loss, variables)
            # One number of each keeps all of them.
            return tf.add_n([tf.reshape(one, [-1])[0] for one in gradients])

        return lambda: function().numpy()

    return step(horo.DistributedGradientTape), step(lambda tape: tape)


def median_ms(step, count):
    taken = []
    for _ in range(count):
        horo.barrier()
        begin = time.perf_counter()
        step()
        taken.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    horo.init()
    every = shapes()
    sizes = [int(numpy.prod(shape)) for shape in every]
    assert len(every) == 161
    function, compute = steps_of_tensorflow(every)
    kinds = {"function": function, "compute": compute, "c-abi": CAbi(sizes)}
    for step in kinds.values():
        median_ms(step, 2)
    for number in range(options.rounds):
        found = {name: median_ms(step, options.steps) for name, step in kinds.items()}
        reduced = (found["function"] - found["compute"]) / found["c-abi"]
        whole = found["function"] / found["c-abi"]
        if horo.rank() == 0:
            words = ", ".join(f"{name} {value:.1f} ms" for name, value in found.items())
            print(f"round {number}: {words}; reduction {reduced:.2f}, whole step {whole:.2f}", flush=True)


if __name__ == "__main__":
    main()
