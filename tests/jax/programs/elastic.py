# SPDX-License-Identifier: Apache-2.0
"""A training of 30 steps, in whose tenth step rank 1 of the first generation is killed."""

import os

import jax
import jax.numpy as jnp

import horo.jax as horo
from horo.jax import elastic

horo.init()
step = jax.jit(lambda p: p + horo.allreduce(jnp.ones_like(p)), donate_argnums=0)


@elastic.run
def train(state):
    while state.step < 30:
        if state.step == 10 and elastic.generation() == 1 and horo.rank() == 1:
            os.kill(os.getpid(), 9)
        state.total = step(state.total)
        state.step += 1
        if state.step % 5 == 0:
            state.commit()
    return float(state.total[0])


result = train(elastic.JaxState(total=jnp.zeros(1000), step=0))
print(f"result {result} in generation {elastic.generation()} of {horo.size()} rank(s)", flush=True)
