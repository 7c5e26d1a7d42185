# SPDX-License-Identifier: Apache-2.0
"""horo.jax inside jit, and under grad, jvp and vmap."""

import jax
import jax.numpy as jnp
import numpy

import horo.jax as horo
from expect import fails
from jax.errors import JaxRuntimeError


def own(shape=(4, 3)):
    return jnp.arange(1.0, 1 + numpy.prod(shape)).reshape(shape) * (horo.rank() + 1)


def all_own(shape=(4, 3)):
    whole = numpy.arange(1.0, 1 + numpy.prod(shape), dtype="float32").reshape(shape)
    return numpy.stack([whole * (rank + 1) for rank in range(horo.size())])


def close(found, wanted):
    numpy.testing.assert_allclose(numpy.asarray(found), numpy.asarray(wanted), rtol=1e-5)


def summed(array, **more):
    return horo.allreduce(array, op=horo.Sum, **more)


def ends(function, *words):
    """The program fails with horo's text, and later programs run."""
    fails(JaxRuntimeError, lambda: jax.block_until_ready(function()), *words)


def check_every_kind():
    size, rank = horo.size(), horo.rank()
    parts = all_own()
    close(jax.jit(summed)(own()), parts.sum(0))
    for op, wanted in ((horo.Min, parts.min(0)), (horo.Max, parts.max(0)), (horo.Average, parts.mean(0))):
        close(jax.jit(lambda x, op=op: horo.allreduce(x, op=op))(own()), wanted)
    close(jax.jit(lambda x: horo.allreduce(x, op=horo.Product))(own()), parts.prod(0))
    close(jax.jit(horo.allgather)(own()), parts.reshape(-1, 3))
    close(jax.jit(lambda x: horo.broadcast(x, size - 1))(own()), parts[size - 1])
    scatter = jax.jit(lambda x: horo.reducescatter(x, op=horo.Sum))
    close(scatter(own()), numpy.array_split(parts.sum(0), size)[rank])  # of 3 ranks, unevenly
    found = jax.jit(horo.alltoall)(own((2 * size,)))
    close(found, all_own((2 * size,)).reshape(size, size, 2)[:, rank].reshape(-1))
    close(jax.jit(horo.barrier)(own()), own())


def check_groups_and_trees():
    both = jax.jit(lambda a, b: horo.grouped_allreduce([a, b], op=horo.Sum))(own(), own((2,)))
    close(both[0], all_own().sum(0))
    close(both[1], all_own((2,)).sum(0))
    tree = jax.jit(lambda t: horo.allreduce_tree(t, compression=horo.Compression.bf16))
    close(tree({"a": own((2,))})["a"], all_own((2,)).mean(0))
    rows = jax.jit(lambda a, b: horo.grouped_allgather([a, b]))(own(), own((2,)))
    close(rows[1], all_own((2,)).reshape(-1))
    parts = jax.jit(lambda a: horo.grouped_reducescatter([a, a], op=horo.Sum))(own((6,)))
    close(parts[1], numpy.array_split(all_own((6,)).sum(0), horo.size())[horo.rank()])


def check_dtypes():
    for dtype in "int8 uint16 int32 float16 bfloat16 uint32 complex64".split():
        found = jax.jit(summed)(jnp.ones(3, dtype))
        assert found.dtype == dtype and found.real.tolist() == [horo.size()] * 3, (found, dtype)
    fails(ValueError, lambda: jax.jit(summed)(jnp.ones(2, jnp.float8_e5m2)), "float8_e5m2")
    fails(ValueError, lambda: jax.jit(horo.allreduce)(jnp.ones(2, jnp.uint32)), "Average", "uint32")


def check_independent_calls_in_one_program():
    """More of them than XLA has threads. XLA starts them in any order."""

    @jax.jit
    def inner(x):
        return summed(x)

    @jax.jit
    def many(x):
        again = [inner(x * i) for i in range(20)]  # one call site, whose program is shared
        return again, [summed(x + i) for i in range(20)]

    for _ in range(5):
        again, others = many(own())
        for i in range(20):
            close(again[i], all_own().sum(0) * i)
            close(others[i], all_own().sum(0) + i * horo.size())


def check_loops_and_branches():
    def body(carry, x):
        return horo.allreduce(carry) + x, summed(x)

    carry, seen = jax.jit(lambda x: jax.lax.scan(body, x, jnp.ones((100, 2))))(own((2,)))
    close(carry, all_own((2,)).mean(0) + 100)
    close(seen, numpy.full((100, 2), horo.size()))
    choose = jax.jit(lambda x, yes: jax.lax.cond(yes, summed, lambda a: a, x))
    close(choose(own(), True), all_own().sum(0))
    close(choose(own(), False), own())
    steps = jax.lax.fori_loop(0, 3, lambda i, x: horo.allreduce(x) + i, own((2,)))
    close(steps, all_own((2,)).mean(0) + 3)
    again = jax.jit(jax.grad(jax.checkpoint(lambda x: (summed(x) ** 2).sum())))(own((2,)))
    close(again, 2 * horo.size() * all_own((2,)).sum(0))


def total(function, x):
    """A loss that differs between ranks; its gradient is that of all ranks' sum."""
    return (function(x) * (horo.rank() + 1)).sum()


def gradient(function, shape=(6,)):
    inside = jax.jit(jax.grad(lambda x: total(function, x)))(own(shape))
    outside = jax.grad(lambda x: total(function, x))(own(shape))
    close(inside, outside)
    return inside


def check_gradients():
    size, rank = horo.size(), horo.rank()
    weights = numpy.arange(1, size + 1)
    close(gradient(summed), numpy.full(6, weights.sum()))
    close(gradient(horo.allreduce), numpy.full(6, weights.mean()))
    scaled = gradient(lambda x: summed(x, prescale_factor=2.0, postscale_factor=3.0))
    close(scaled, numpy.full(6, 6 * weights.sum()))
    close(gradient(horo.allgather), numpy.full(6, weights.sum()))
    root = gradient(lambda x: horo.broadcast(x, 0))
    close(root, numpy.full(6, weights.sum() if rank == 0 else 0))
    rows = numpy.concatenate(
        [numpy.full(len(part), r + 1) for r, part in enumerate(numpy.array_split(range(7), size))]
    )
    close(gradient(lambda x: horo.reducescatter(x, op=horo.Sum), (7,)), rows)
    close(gradient(horo.reducescatter, (7,)), rows / size)
    close(gradient(horo.alltoall, (2 * size,)), numpy.repeat(weights, 2))
    fails(NotImplementedError, lambda: gradient(lambda x: horo.allreduce(x, op=horo.Max)), "Max")


def check_jvp_and_second_derivatives():
    value, tangent = jax.jvp(summed, (own((2,)),), (jnp.ones(2),))
    close(value, all_own((2,)).sum(0))
    close(tangent, numpy.full(2, horo.size()))
    second = jax.jit(jax.hessian(lambda x: (summed(x) ** 2).sum()))
    close(second(own((2,))), numpy.eye(2) * 2 * horo.size() ** 2)


def check_vmap():
    batch = jnp.stack([own((6,)), own((6,)) + 1], axis=1)
    for function in (
        summed,
        horo.allgather,
        lambda x: horo.broadcast(x, 0),
        lambda x: horo.reducescatter(x, op=horo.Sum),
        horo.alltoall,
    ):
        found = jax.jit(jax.vmap(function, in_axes=1))(batch)
        close(found, jnp.stack([function(batch[:, 0]), function(batch[:, 1])]))
    adasum = jax.vmap(lambda x: horo.allreduce(x, op=horo.Adasum))
    fails(NotImplementedError, lambda: adasum(batch), "Adasum", "vmap")


def check_a_donated_argument_is_reduced_in_place():
    given = jnp.ones(100000)
    address = given.block_until_ready().unsafe_buffer_pointer()
    found = jax.jit(summed, donate_argnums=0)(given).block_until_ready()
    assert found.unsafe_buffer_pointer() == address and given.is_deleted()
    kept = jnp.ones(100000)
    jax.jit(summed)(kept).block_until_ready()
    close(kept, numpy.ones(100000))


def check_ranks_that_trace_in_another_order():
    first, second = jax.jit(lambda x: summed(x, name="first")), jax.jit(lambda x: summed(x * 2))
    programs = [first, second] if horo.rank() % 2 else [second, first]
    for program in programs:
        program.lower(own()).compile()
    close(first(own()), all_own().sum(0))
    close(second(own()), 2 * all_own().sum(0))


def check_programs_compiled_ahead():
    function = jax.jit(lambda x, factor=1.0: summed(x) * factor, donate_argnums=0)
    program = function.lower(own(), factor=2.0).compile()
    for _ in range(4):  # jax starts a program in another way from the second time on
        close(program(own(), factor=2.0), 2 * all_own().sum(0))
        close(function(own(), factor=2.0), 2 * all_own().sum(0))
    fails(TypeError, lambda: program(own((2,)), factor=2.0), "float32[2]")
    several = jax.jit(lambda x: (summed(x), x * 2, horo.allgather(x))).lower(own()).compile()
    for _ in range(3):
        close(several(own())[0], all_own().sum(0))


def check_shapes_that_change():
    program = jax.jit(summed)
    for rows in (4, 5, 4, 6):
        close(program(own((rows, 2))), all_own((rows, 2)).sum(0))


def check_ranks_that_differ():
    if horo.size() == 1:
        return
    program = jax.jit(lambda x: summed(x, name="differs"))
    for _ in range(2):
        ends(lambda: program(own((2 + horo.rank(),))), "horo: mismatch", "differs", "shape")
    close(program(own((2,))), all_own((2,)).sum(0))
    gather = jax.jit(horo.allgather)
    ends(lambda: gather(own((2 + horo.rank(),))), "rows", "outside jit")
    fails(ValueError, lambda: jax.jit(horo.alltoall)(own((4 * horo.size() + 1,))), "multiple")
    fails(ValueError, lambda: jax.jit(lambda x: horo.alltoall(x, [1]))(own()), "splits")
    fails(ValueError, lambda: jax.jit(horo.allreduce_async)(own()), "_async")


def check_process_sets():
    if horo.size() == 1:
        return
    for process_set in [horo.add_process_set([rank]) for rank in range(horo.size())]:
        program = jax.jit(lambda x, own_set=process_set: summed(x, process_set=own_set))
        if process_set.included():
            close(program(own()), own())
        else:
            fails(ValueError, lambda program=program: program(own()), "process set")
        horo.remove_process_set(process_set)
        if process_set.ranks == [horo.rank()]:
            ends(lambda program=program: program(own()), "process set was removed")
