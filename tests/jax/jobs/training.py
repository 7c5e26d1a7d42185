# SPDX-License-Identifier: Apache-2.0
"""Gradients of all ranks: horo.jax.value_and_grad, grad and DistributedOptimizer."""

import jax
import jax.numpy as jnp
import numpy

import horo.jax as horo
from expect import fails

try:
    import optax
except ImportError:
    optax = None


def loss(params, x):
    return ((x @ params["w"] + params["b"]) ** 2).mean()


def start():
    return {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}


def batch(rank):
    return jnp.arange(12.0).reshape(4, 3) / 10 + rank


def everything():
    return jnp.concatenate([batch(rank) for rank in range(horo.size())])


def close(found, wanted):
    jax.tree_util.tree_map(
        lambda a, b: numpy.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), found, wanted
    )


def check_gradients_are_those_of_the_whole_batch():
    wanted = jax.value_and_grad(loss)(start(), everything())
    for wrap in (jax.jit, lambda function: function):
        value, gradients = wrap(horo.value_and_grad(loss, average_value=True))(
            start(), batch(horo.rank())
        )
        close((value, gradients), wanted)
        close(wrap(horo.grad(loss))(start(), batch(horo.rank())), wanted[1])


def check_auxiliary_values_stay_on_their_rank():
    def with_rank(params, x):
        return loss(params, x), horo.rank()

    gradients, rank = horo.grad(with_rank, has_aux=True)(start(), batch(horo.rank()))
    assert rank == horo.rank()
    close(gradients, jax.grad(loss)(start(), everything()))


class Descent:
    """An optimizer with optax's interface."""

    @staticmethod
    def init(params):
        return ()

    @staticmethod
    def update(updates, state, params=None):
        return jax.tree_util.tree_map(lambda one: -0.1 * one, updates), state


def trained(optimizer, data, steps=3):
    @jax.jit
    def step(params, state, x):
        updates, state = optimizer.update(jax.grad(loss)(params, x), state, params)
        return jax.tree_util.tree_map(jnp.add, params, updates), state

    params = start()
    state = optimizer.init(params)
    for _ in range(steps):
        params, state = step(params, state, data)
    return params


def check_optimizer():
    wanted = trained(Descent(), everything())
    for options in ({}, {"gradient_predivide_factor": 2.0}, {"op": horo.Average}):
        found = trained(horo.DistributedOptimizer(Descent(), **options), batch(horo.rank()))
        close(found, wanted)
    half = horo.DistributedOptimizer(Descent(), compression=horo.Compression.bf16)
    jax.tree_util.tree_map(
        lambda a, b: numpy.testing.assert_allclose(a, b, rtol=0.05, atol=0.05),
        trained(half, batch(horo.rank())),
        wanted,
    )


def check_optimizers_of_optax():
    if optax is None:
        return
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.1))
    wanted = trained(chain, everything())
    made = horo.DistributedOptimizer(chain)
    assert isinstance(made, optax.GradientTransformation)
    close(trained(made, batch(horo.rank())), wanted)
    steps = horo.DistributedOptimizer(optax.sgd(0.1), backward_passes_per_step=2)
    close(trained(steps, batch(horo.rank()), 4), trained(optax.sgd(0.1), everything(), 2))


def check_bad_arguments():
    fails(ValueError, lambda: horo.DistributedOptimizer(7), "int", "init")
    fails(
        ValueError,
        lambda: horo.DistributedOptimizer(Descent(), backward_passes_per_step=0),
        "backward_passes_per_step",
    )
    made = horo.DistributedOptimizer(Descent(), op=horo.Sum, gradient_predivide_factor=2.0)
    fails(ValueError, lambda: made.update(start(), ()), "gradient_predivide_factor")
