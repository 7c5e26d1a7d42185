# SPDX-License-Identifier: Apache-2.0
"""horo.jax outside jit: every function, on arrays of all dtypes."""

import jax
import jax.numpy as jnp
import numpy

import horo.jax as horo
from expect import fails

DTYPES = "uint8 int8 uint16 int16 int32 float16 bfloat16 float32 uint32 complex64".split()


def part(rank, dtype, shape):
    count = int(numpy.prod(shape, dtype=int))
    return jnp.asarray(((numpy.arange(count) * 7 + rank * 3) % 3 + 1).reshape(shape)).astype(dtype)


def own(dtype="float32", shape=(4, 3)):
    return part(horo.rank(), dtype, shape)


def all_parts(dtype="float32", shape=(4, 3)):
    return numpy.stack([numpy.asarray(part(r, dtype, shape)) for r in range(horo.size())])


def equal(found, wanted, dtype=None):
    assert isinstance(found, jax.Array), type(found)
    assert dtype is None or found.dtype == dtype, (found.dtype, dtype)
    wanted = numpy.asarray(wanted)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    assert numpy.array_equal(numpy.asarray(found).astype(wanted.dtype), wanted), (found, wanted)


def check_allreduce_of_every_dtype():
    for dtype in DTYPES:
        for shape in ((4, 3), (), (0, 2), (1,)):
            wanted = all_parts(dtype, shape).astype("complex64").sum(0)
            equal(horo.allreduce(own(dtype, shape), op=horo.Sum), wanted, dtype)


def check_allreduce_with_every_op():
    parts = all_parts()
    for op, wanted in (
        (horo.Average, parts.mean(0)),
        (horo.Min, parts.min(0)),
        (horo.Max, parts.max(0)),
        (horo.Product, parts.prod(0)),
    ):
        equal(horo.allreduce(own(), op=op), wanted)
    assert horo.allreduce(own(), op=horo.Adasum).shape == (4, 3)
    flags = jnp.array([horo.rank() == 0, True])
    equal(horo.allreduce(flags, op=horo.Min), [horo.size() == 1, True], "bool")
    scaled = horo.allreduce(own(), op=horo.Sum, prescale_factor=2.0, postscale_factor=0.5)
    equal(scaled, parts.sum(0))


def check_an_array_stays_as_it_was():
    given = own()
    before = numpy.array(given)
    horo.allreduce(given, op=horo.Sum)
    assert numpy.array_equal(numpy.asarray(given), before)


def check_groups_and_handles():
    first, second = horo.grouped_allreduce([own(), own("int32", (5,))], op=horo.Sum)
    equal(first, all_parts().sum(0))
    equal(second, all_parts("int32", (5,)).sum(0))
    handle = horo.allreduce_async(own(), name="kept", op=horo.Sum)
    equal(horo.synchronize(handle), all_parts().sum(0))
    gathered = horo.grouped_allgather([own(), own("int32", (2,))])
    equal(gathered[1], all_parts("int32", (2,)).reshape(-1))


def check_rows_that_differ():
    rank, size = horo.rank(), horo.size()
    found = horo.allgather(jnp.full((rank + 1, 2), rank))
    equal(found, numpy.concatenate([numpy.full((r + 1, 2), r) for r in range(size)]))
    scattered = horo.reducescatter(jnp.arange(size + 1.0), op=horo.Sum)
    wanted = numpy.array_split(numpy.arange(size + 1.0) * size, size)[rank]
    equal(scattered, wanted)


def check_alltoall():
    rank, size = horo.rank(), horo.size()
    equal(horo.alltoall(jnp.arange(size) + 10 * rank), numpy.arange(size) * 10 + rank)
    splits = [r + 1 for r in range(size)]
    rows, received = horo.alltoall(jnp.full((sum(splits), 2), rank), splits=splits)
    assert list(received) == [rank + 1] * size and rows.shape == ((rank + 1) * size, 2)


def check_broadcast_of_arrays_objects_and_trees():
    root = horo.size() - 1
    equal(horo.broadcast(own(), root), all_parts()[root])
    assert horo.broadcast_object({"rank": horo.rank()}, root) == {"rank": root}
    assert horo.allgather_object(horo.rank()) == list(range(horo.size()))
    tree = {"w": own(), "key": jax.random.key(horo.rank()), "step": horo.rank(), "u": own("uint32")}
    same = horo.broadcast_parameters(tree, root)
    equal(same["w"], all_parts()[root])
    assert same["step"] == root and type(same["step"]) is int
    assert jax.random.key_data(same["key"]).tolist() == jax.random.key_data(
        jax.random.key(root)
    ).tolist()


def check_allreduce_of_a_tree():
    tree = {"a": own(), "b": [own("int32", (2,)), jnp.float32(1)]}
    found = horo.allreduce_tree(tree, op=horo.Sum)
    equal(found["a"], all_parts().sum(0))
    equal(found["b"][1], numpy.float32(horo.size()))
    halved = horo.allreduce_tree(tree, op=horo.Sum, compression=horo.Compression.bf16)
    equal(halved["a"], all_parts().sum(0), "float32")
    assert horo.allreduce_tree({}) == {}


def check_process_sets():
    for process_set in [horo.add_process_set([rank]) for rank in range(horo.size())]:
        if process_set.included():
            equal(horo.allreduce(own(), op=horo.Sum, process_set=process_set), own())
            horo.barrier(process_set=process_set)
        else:
            fails(ValueError, lambda: horo.allreduce(own(), process_set=process_set), "process set")
        horo.remove_process_set(process_set)


def check_bad_input_is_refused_by_name():
    fails(ValueError, lambda: horo.allreduce(jnp.ones(2, jnp.float8_e5m2)), "float8_e5m2")
    fails(ValueError, lambda: horo.allreduce(jax.random.key(0)), "key<fry>", "key_data")
    fails(ValueError, lambda: horo.allreduce(own("uint32")), "Average", "uint32")
    fails(ValueError, lambda: horo.allreduce(own("complex64"), op=horo.Max), "Max", "complex64")
    fails(ValueError, lambda: horo.allgather(jnp.float32(1)), "reshape(1)")
    fails((TypeError, ValueError), lambda: horo.allreduce("text"), "text")
    shape = (horo.rank() + 2,)
    fails(horo.MismatchError, lambda: horo.allreduce(jnp.ones(shape), name="shape"), "shape")
