# SPDX-License-Identifier: Apache-2.0
"""horo.keras on the backend that KERAS_BACKEND names; horo.tensorflow.keras on Keras 2."""

import os
import tempfile

import numpy

try:
    import keras

    KERAS_3 = int(keras.__version__.partition(".")[0]) >= 3
except ImportError:
    KERAS_3 = False
if KERAS_3:
    import horo.keras as horo
else:
    import tensorflow as tf

    import horo.tensorflow.keras as horo

    keras = tf.keras

from expect import fails

BATCH = 16  # over all ranks
GENERATOR = numpy.random.default_rng(7)
X = GENERATOR.normal(size=(64, 8)).astype("float32")
Y = (X.sum(1, keepdims=True) > 0).astype("float32")
TOLERANCE = 2e-5


def start():
    """The weights with which each model begins, the same on all ranks."""
    generator = numpy.random.default_rng(3)
    shapes = [(8, 16), (16,), (16, 1), (1,)]
    return [generator.normal(size=shape).astype("float32") * 0.3 for shape in shapes]


def model_of(optimizer, weights=True, **options):
    layers = keras.layers
    model = keras.Sequential([layers.Input((8,)), layers.Dense(16, "tanh"), layers.Dense(1)])
    if weights:
        model.set_weights(start())
    model.compile(optimizer, "mse", metrics=["mae"], **options)
    return model


def mine(rows=slice(None)):
    """This rank's part of each batch, one batch after the other."""
    n, me = horo.size(), horo.rank()
    each = BATCH // n
    places = numpy.arange(len(X)).reshape(-1, n, each)[:, me].ravel()
    return X[places][rows], Y[places][rows]


def fit(model, x, y, batch, epochs=2, callbacks=()):
    return model.fit(x, y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0, callbacks=list(callbacks))


def close(found, wanted):
    for one, other in zip(found, wanted):
        assert numpy.allclose(one, other, atol=TOLERANCE), (one, other)


def sgd(**options):
    return keras.optimizers.SGD(0.05, momentum=0.9, **options)


def check_fit_equals_one_process_with_all_batches():
    for make in (sgd, lambda: keras.optimizers.Adam(0.01)):
        alone = model_of(make())
        fit(alone, X, Y, BATCH)
        optimizer = make()
        together = model_of(horo.DistributedOptimizer(optimizer))
        fit(together, *mine(), BATCH // horo.size())
        close(together.get_weights(), alone.get_weights())
        assert isinstance(together.optimizer, type(optimizer))
        assert type(together.optimizer).__name__ == type(optimizer).__name__


def check_options():
    alone = model_of(sgd())
    fit(alone, X, Y, BATCH, 1)
    for options in ({"groups": 2}, {"gradient_predivide_factor": 2.0}):
        together = model_of(horo.DistributedOptimizer(sgd(), **options))
        fit(together, *mine(), BATCH // horo.size(), 1)
        close(together.get_weights(), alone.get_weights())
    near = model_of(horo.DistributedOptimizer(sgd(), compression=horo.Compression.fp16))
    fit(near, *mine(), BATCH // horo.size(), 1)
    assert all(numpy.allclose(a, b, atol=5e-3) for a, b in zip(near.get_weights(), alone.get_weights()))
    fails(ValueError, lambda: horo.DistributedOptimizer(horo.DistributedOptimizer(sgd())), "already")
    fails(ValueError, lambda: horo.DistributedOptimizer("sgd"), "optimizer of Keras")
    fails(ValueError, lambda: horo.DistributedOptimizer(sgd(), op=horo.Sum, gradient_predivide_factor=2.0), "Average")


def check_backward_passes():
    """Two passes of half batches and one step equal one step with the whole batch."""
    alone = model_of(keras.optimizers.SGD(0.05))
    fit(alone, X, Y, BATCH, 1)
    half = BATCH // horo.size() // 2
    for average, rate in ((True, 0.05), (False, 0.025)):
        together = model_of(
            horo.DistributedOptimizer(
                keras.optimizers.SGD(rate),
                backward_passes_per_step=2,
                average_aggregated_gradients=average,
            )
        )
        fit(together, *mine(), half, 1)
        close(together.get_weights(), alone.get_weights())


def check_partial():
    """The gradients of local layers stay on their ranks."""
    made = model_of(sgd())
    optimizer = horo.PartialDistributedOptimizer(sgd(), local_layers=made.layers[-1])
    made.compile(optimizer, "mse")
    fit(made, *mine(), BATCH // horo.size(), 1)
    last = horo.allgather(made.get_weights()[2][None])
    assert not numpy.allclose(last[0], last[-1])


def check_callbacks():
    keras.utils.set_random_seed(horo.rank())
    model = model_of(horo.DistributedOptimizer(sgd()), weights=False)
    before = horo.allgather(model.get_weights()[0][None])
    assert not numpy.allclose(before[0], before[-1])
    warm = horo.callbacks.LearningRateWarmupCallback(0.05, warmup_epochs=2, verbose=1)
    done = fit(
        model,
        *mine(),
        BATCH // horo.size(),
        3,
        [
            horo.callbacks.BroadcastGlobalVariablesCallback(0),
            horo.callbacks.MetricAverageCallback(),
            warm,
        ],
    )
    after = horo.allgather(model.get_weights()[0][None])
    assert numpy.allclose(after[0], after[-1])
    for name in ("loss", "mae"):
        every = horo.allgather(numpy.array(done.history[name])[None])
        assert numpy.allclose(every[0], every[-1]), (name, every)
    n, steps = horo.size(), len(mine()[0]) // (BATCH // horo.size())
    reached = [((epoch + 1) * (n - 1) / 2 + 1) / n * 0.05 for epoch in range(2)]
    assert steps and numpy.allclose(done.history["lr"][:2], reached), (done.history["lr"], reached)


def check_learning_rate_schedule():
    model = model_of(horo.DistributedOptimizer(keras.optimizers.SGD(0.4)))
    schedule = horo.callbacks.LearningRateScheduleCallback
    done = fit(
        model,
        *mine(),
        BATCH // horo.size(),
        4,
        [schedule(0.1, 1.0, end_epoch=2), schedule(0.1, lambda epoch: 0.5**epoch, start_epoch=2)],
    )
    assert numpy.allclose(done.history["lr"], [0.1, 0.1, 0.025, 0.0125]), done.history["lr"]
    fails(ValueError, lambda: schedule(None, 1.0), "initial_lr")


def check_load_model():
    model = model_of(horo.DistributedOptimizer(sgd()))
    fit(model, *mine(), BATCH // horo.size(), 1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras" if KERAS_3 else "model.h5")
        model.save(path)
        plain = keras.models.load_model(path)  # without Horo
        assert type(plain.optimizer).__module__ == type(model.optimizer).__module__
        loaded = horo.load_model(path)
    close(loaded.get_weights(), model.get_weights())
    fit(model, *mine(), BATCH // horo.size(), 1)
    fit(loaded, *mine(), BATCH // horo.size(), 1)
    # The momentum has come along.
    close(loaded.get_weights(), model.get_weights())


def check_elastic_state():
    model = model_of(horo.DistributedOptimizer(sgd()))
    model.set_weights([one + horo.rank() for one in start()])
    state = horo.elastic.KerasState(model, batch=0, epoch=0)
    state.sync()
    close(model.get_weights(), start())
    elastic = horo.elastic
    updates = [
        elastic.UpdateBatchStateCallback(state),
        elastic.UpdateEpochStateCallback(state),
        elastic.CommitStateCallback(state, batches_per_commit=2),
    ]
    fit(model, *mine(), BATCH // horo.size(), 1, updates)
    assert (state.batch, state.epoch) == (0, 1), (state.batch, state.epoch)
    kept = model.get_weights()
    model.set_weights([one * 0 for one in kept])
    state.epoch = 9
    state.restore()
    close(model.get_weights(), kept)
    assert state.epoch == 1
    fit(model, *mine(), BATCH // horo.size(), 1)  # it trains on

    @elastic.run
    def train(given):
        return given.epoch

    assert train(state) == 1


def check_values():
    n = horo.size()
    assert numpy.allclose(horo.allreduce(horo.rank() + 1.0), (n + 1) / 2)
    assert horo.allgather([horo.rank()]).tolist() == list(range(n))
    assert horo.broadcast(numpy.array([horo.rank()]), 1).tolist() == [1]
    assert horo.reducescatter(numpy.ones(n), op=horo.Sum).tolist() == [n]
    if KERAS_3:
        tensor = keras.ops.ones((2,)) * (horo.rank() + 1.0)
        assert numpy.allclose(horo.allreduce(tensor), (n + 1) / 2)
        fails(RuntimeError, lambda: horo.broadcast_global_variables(0), "BroadcastGlobalVariablesCallback")


def check_apply_by_hand():
    """A loop of the user that calls the optimizer itself, as in Keras 3's guides."""
    if not KERAS_3 or keras.config.backend() != "tensorflow":
        return
    import tensorflow as tf

    optimizer = horo.DistributedOptimizer(keras.optimizers.Adam(0.1))
    variable = keras.Variable(numpy.ones(3, "float32"), name="v")
    for _ in range(2):
        gradient = tf.ones([3]) * (horo.rank() + 1.0)
        optimizer.apply_gradients([(gradient, variable)])
        optimizer.apply([gradient], [variable])
    every = horo.allgather(numpy.asarray(variable.value)[None])
    assert numpy.allclose(every[0], every[-1])


def check_a_difference_in_fit_is_an_error_on_all_ranks():
    layers = keras.layers
    model = keras.Sequential([layers.Input((8,)), layers.Dense(1 + horo.rank())])
    model.compile(horo.DistributedOptimizer(sgd()), "mse")
    fails(Exception, lambda: fit(model, *mine(), BATCH // horo.size(), 1), "ranks disagree about the shape")
    assert numpy.allclose(horo.allreduce(1.0), 1.0)
