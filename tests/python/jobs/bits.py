# SPDX-License-Identifier: Apache-2.0
"""Prints a hash of the bits of many reductions whose order of submission and timing are random."""

import hashlib
import random
import sys
import time

import numpy

import horo.numpy as horo

horo.init()
generator = numpy.random.default_rng(horo.rank())
tensors = [
    generator.standard_normal(3 ** (index % 9 + 1)).astype("float32") for index in range(60)
]
order = list(range(len(tensors)))
shuffle = random.Random()  # seeded by the system, so different in every run
shuffle.shuffle(order)
handles = {}
for index in order:
    start = horo.reducescatter_async if index % 5 == 0 else horo.allreduce_async
    op = horo.Adasum if index % 7 == 1 else horo.Average
    op = horo.Sum if index % 5 == 0 else op
    handles[index] = start(tensors[index], name=f"t{index}", op=op)
    if shuffle.random() < 0.1:
        time.sleep(0.002)
digest = hashlib.sha256()
for index in range(len(tensors)):
    digest.update(horo.synchronize(handles[index]).tobytes())
digests = horo.allgather(numpy.frombuffer(digest.digest(), numpy.uint8), name="digests")
if horo.rank() == 0:
    print("bits", hashlib.sha256(digests.tobytes()).hexdigest())
    sys.stdout.flush()
horo.shutdown()
