# SPDX-License-Identifier: Apache-2.0
"""Sweeps over the allocations that the module makes for an op: the first fails, then the second, and so
on, until none is left. failing_malloc.so must be preloaded."""

import ctypes

import tensorflow as tf

import horo.tensorflow as horo

horo.init()
preloaded = ctypes.CDLL(None)
preloaded.fail_allocation.argtypes = [ctypes.c_char_p, ctypes.c_long]
OPS = {
    "allreduce": lambda name: horo.allreduce(tf.ones([5]), name=name, op=horo.Sum),
    "allgather": lambda name: horo.allgather(tf.ones([5]), name=name),
    "alltoall": lambda name: horo.alltoall(tf.ones([5]), name=name),
    "reducescatter": lambda name: horo.reducescatter(tf.ones([5]), name=name, op=horo.Sum),
    "broadcast": lambda name: horo.broadcast(tf.ones([5]), 0, name=name),
}


def sweep(kind, op):
    failed = 0
    for number in range(1000):
        name = f"{kind}.{number}"  # makes a new kernel, too
        preloaded.fail_allocation(b"horo-tensorflow.so", number)
        try:
            result = op(name)
        except (horo.HoroError, MemoryError, tf.errors.OpError) as error:
            assert "bad_alloc" in str(error) or "memory" in str(error).lower(), repr(error)
            failed += 1
        else:
            assert result.numpy().tolist() == [1.0] * 5, result
            if preloaded.fail_allocation(b"", -1) >= 0:  # it was not reached
                return failed
        preloaded.fail_allocation(b"", -1)
        assert op(f"{kind}.after").numpy().tolist() == [1.0] * 5
    raise AssertionError(f"{kind}: allocations without end")


for kind, op in OPS.items():
    assert sweep(kind, op) > 3, kind
print("all right", flush=True)
