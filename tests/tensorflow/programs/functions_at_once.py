# SPDX-License-Identifier: Apache-2.0
"""Functions with a collective at the same time, more of them than the machine has cores. None of the first half that a
rank starts can end before the other rank starts its second half."""

import os
import threading

import tensorflow as tf

import horo.tensorflow as horo

COUNT = min(2 * (os.cpu_count() or 1) + 4, 100)  # each rank has half of them in flight, at most 64 with TensorFlow 2.12

horo.init()
rank, size = horo.rank(), horo.size()
found = [None] * COUNT


@tf.function
def reduced(x, index):
    return horo.allreduce(x, op=horo.Sum, name=f"at once.{index}")


def run(index):
    found[index] = float(reduced(tf.constant(rank + 1.0), index))


def all_at_once(indices):
    threads = [threading.Thread(target=run, args=(index,)) for index in indices]
    for thread in threads:
        thread.start()
    return threads


for index in range(COUNT):  # traced alone
    run(index)
halves = [range(COUNT // 2), range(COUNT // 2, COUNT)]
for _ in range(3):
    first = all_at_once(halves[rank % 2])
    # Rank 1 has begun none of these yet, and rank 0 none of its others.
    horo.barrier()
    second = all_at_once(halves[1 - rank % 2])
    for thread in [*first, *second]:
        thread.join()
    assert found == [size * (size + 1) / 2] * COUNT, found
    found = [None] * COUNT
print("all right", flush=True)
