# SPDX-License-Identifier: Apache-2.0
"""Gradients of horo.tensorflow's ops, tapes and synchronised normalization."""

import numpy
import tensorflow as tf

import horo.tensorflow as horo
from expect import fails


def gradient_of(function, x):
    """The gradient of sum(function(x) * weights), eagerly and in a function."""

    def compute(given):
        with tf.GradientTape() as tape:
            tape.watch(given)
            loss = function(given)
        return tape.gradient(loss, given)

    eager, traced = compute(x), tf.function(compute)(x)
    assert numpy.allclose(eager.numpy(), traced.numpy()), (eager, traced)
    return eager.numpy()


def mean_of_ranks():
    return float(numpy.mean([rank + 1 for rank in range(horo.size())]))


def total_of_ranks():
    return float(sum(rank + 1 for rank in range(horo.size())))


def check_gradients_of_reductions():
    me, n = horo.rank(), horo.size()
    x = tf.ones([2 * n, 3])
    for op, wanted in ((horo.Sum, total_of_ranks()), (horo.Average, mean_of_ranks())):
        found = gradient_of(lambda v: tf.reduce_sum(horo.allreduce(v, op=op)) * (me + 1.0), x)
        assert numpy.allclose(found, wanted), (op, found)
    found = gradient_of(
        lambda v: tf.reduce_sum(horo.allreduce(v, op=horo.Sum, prescale_factor=0.5)), x
    )
    assert numpy.allclose(found, n * 0.5), found
    fails(
        (NotImplementedError, LookupError),
        lambda: gradient_of(lambda v: tf.reduce_sum(horo.allreduce(v, op=horo.Max)), x),
    )
    # Each rank weighs its own rows.
    found = gradient_of(
        lambda v: tf.reduce_sum(horo.reducescatter(v, op=horo.Sum)) * (me + 1.0), x
    )
    wanted = numpy.repeat([rank + 1.0 for rank in range(n)], 2)
    assert numpy.allclose(found, wanted[:, None]), found
    found = gradient_of(lambda v: tf.reduce_sum(horo.reducescatter(v)) * (me + 1.0), x)
    assert numpy.allclose(found, wanted[:, None] / n), found


def check_gradients_of_moves():
    me, n = horo.rank(), horo.size()
    x = tf.ones([me + 1, 2])
    found = gradient_of(lambda v: tf.reduce_sum(horo.allgather(v)) * (me + 1.0), x)
    assert found.shape == (me + 1, 2) and numpy.allclose(found, total_of_ranks()), found
    found = gradient_of(lambda v: tf.reduce_sum(horo.broadcast(v, 1)) * (me + 1.0), tf.ones([3]))
    assert numpy.allclose(found, total_of_ranks() if me == 1 else 0.0), found
    splits = [me + 1] * n  # one further row is not sent
    found = gradient_of(
        lambda v: tf.reduce_sum(horo.alltoall(v, splits)[0]) * (me + 1.0), tf.ones([n * (me + 1) + 1, 2])
    )
    wanted = numpy.repeat([rank + 1.0 for rank in range(n)], me + 1).tolist() + [0.0]
    assert numpy.allclose(found, numpy.array(wanted)[:, None]), found


def check_gradients_of_groups():
    me = horo.rank()
    xs = [tf.ones([2]), tf.ones([3])]

    @tf.function
    def function():
        with tf.GradientTape() as tape:
            tape.watch(xs)
            one, _ = horo.grouped_allreduce(xs, op=horo.Sum)  # the second has no gradient
            loss = tf.reduce_sum(one) * (me + 1.0)
        return tape.gradient(loss, xs)

    found = function()
    assert numpy.allclose(found[0], total_of_ranks()) and numpy.allclose(found[1], 0.0), found


def variables():
    return [tf.Variable(tf.ones([3]), name="w"), tf.Variable(tf.ones([4, 2]), name="table"), tf.Variable(1.0)]


def gradients(given, wrap, eager):
    """Gradients of a loss that differs between ranks; the last variable has none."""
    me = horo.rank()

    def compute():
        with tf.GradientTape() as tape:
            rows = tf.gather(given[1], [me, me])
            loss = tf.reduce_sum(given[0]) * (me + 1.0) + tf.reduce_sum(rows)
        return wrap(tape).gradient(loss, given)

    return compute() if eager else tf.function(compute)()


def check_tapes():
    n = horo.size()
    dense = numpy.zeros((4, 2), numpy.float32)
    for rank in range(n):
        dense[rank] += 2.0 / n
    options = (
        {},
        {"sparse_as_dense": True},
        {"groups": 1},
        {"num_groups": 2, "sparse_as_dense": True},
        {"compression": horo.Compression.fp16},
        {"gradient_predivide_factor": 2.0},
    )
    for given in options:
        for eager in (True, False):
            found = gradients(variables(), lambda tape: horo.DistributedGradientTape(tape, **given), eager)
            assert numpy.allclose(found[0].numpy(), mean_of_ranks()), (given, found[0])
            assert isinstance(found[1], tf.IndexedSlices) is not given.get("sparse_as_dense", False)
            assert numpy.allclose(tf.convert_to_tensor(found[1]).numpy(), dense), (given, found[1])
            assert found[2] is None
    given = variables()
    for groups in ([[given[0], given[1]]], [[given[1]], [given[0]]]):
        tape = lambda one: horo.DistributedGradientTape(one, groups=groups, sparse_as_dense=True)
        assert numpy.allclose(gradients(given, tape, False)[0].numpy(), mean_of_ranks())
    fails(ValueError, lambda: horo.DistributedGradientTape(tf.GradientTape(), op=horo.Sum, gradient_predivide_factor=2.0), "Average")


def check_a_tape_is_one_of_tensorflow():
    tape = horo.DistributedGradientTape(tf.GradientTape(persistent=True))
    assert isinstance(tape, tf.GradientTape) and type(tape).__name__ == "GradientTape"
    x = {"a": tf.Variable(2.0), "b": [tf.Variable(3.0)]}
    with tape:
        loss = (x["a"] * x["b"][0]) * (horo.rank() + 1.0)
    found = tape.gradient(loss, x)
    assert numpy.isclose(found["a"].numpy(), 3.0 * mean_of_ranks())
    assert numpy.isclose(found["b"][0].numpy(), 2.0 * mean_of_ranks())
    assert numpy.isclose(tape.gradient(loss, x["a"]).numpy(), 3.0 * mean_of_ranks())


def check_local_sources():
    given, n = variables(), horo.size()

    def wrap(tape):
        made = horo.DistributedGradientTape(tape, sparse_as_dense=True)
        made.register_local_source(given[0])
        return made

    for eager in (True, False):
        found = gradients(given, wrap, eager)[0].numpy()
        assert numpy.allclose(found, (horo.rank() + 1.0) / n), found
    layer = tf.keras.layers.Dense(1, use_bias=False)
    layer.build((None, 2))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.ones([1, 2]))) * (horo.rank() + 1.0)
    tape = horo.PartialDistributedGradientTape(tape, local_layers=layer, scale_local_gradients=False)
    (found,) = tape.gradient(loss, layer.trainable_weights[:1])
    assert numpy.allclose(found.numpy(), horo.rank() + 1.0), found


def check_two_tapes_in_one_function():
    """Their gradients have different names, although the variables are the same."""
    given = variables()

    @tf.function
    def function():
        results = []
        for factor in (1.0, 2.0):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(given[0]) * (horo.rank() + 1.0) * factor
            results.append(horo.DistributedGradientTape(tape).gradient(loss, given[:1])[0])
        return results

    for _ in range(3):
        one, two = function()
        assert numpy.allclose(one.numpy(), mean_of_ranks()) and numpy.allclose(two.numpy(), 2 * one.numpy())


def check_two_generations_use_the_same_functions():
    traced = tf.function(lambda x: horo.allreduce(x, op=horo.Sum))
    for _ in range(2):
        assert numpy.allclose(traced(tf.ones([3])).numpy(), horo.size())
        horo.shutdown()
        horo.init()
    assert numpy.allclose(horo.allreduce(tf.ones([3]), op=horo.Sum).numpy(), horo.size())


def check_sync_batch_normalization():
    me, n = horo.rank(), horo.size()
    generator = numpy.random.default_rng(1)
    every = [generator.normal(size=(3 + rank, 4, 2)).astype("float32") for rank in range(n)]
    whole = numpy.concatenate(every)

    plain = tf.keras.layers.BatchNormalization()
    with tf.GradientTape() as tape:
        inputs = tf.constant(whole)
        tape.watch(inputs)
        wanted = plain(inputs, training=True)
        loss = tf.reduce_sum(wanted * wanted * wanted)
    wanted_gradient = tape.gradient(loss, inputs).numpy()

    layer = horo.SyncBatchNormalization()
    begin = sum(3 + rank for rank in range(me))
    own = slice(begin, begin + 3 + me)

    def compute(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            found = layer(inputs, training=True)
            loss = tf.reduce_sum(found * found * found)
        return found, tape.gradient(loss, inputs)

    found, gradient = compute(tf.constant(every[me]))
    assert numpy.allclose(found.numpy(), wanted.numpy()[own], atol=1e-4)
    assert numpy.allclose(gradient.numpy(), wanted_gradient[own], atol=1e-3)
    assert numpy.allclose(layer.moving_mean, plain.moving_mean, atol=1e-5)
    fails(ValueError, lambda: horo.SyncBatchNormalization(fused=True), "fused")
