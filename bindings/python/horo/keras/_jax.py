# SPDX-License-Identifier: Apache-2.0
"""Gradients of Keras on JAX. Keras compiles a whole step, so that the reduction is a call from
compiled code back to the host."""

from __future__ import annotations

import jax
import numpy
from jax.experimental import io_callback

import horo.numpy as horo
from horo import errors
from horo._optimizer.gradient_lists import ListReducer
from horo._sets import of

_failure: errors.HoroError | None = None  # the last one in a call from compiled code


def as_horo(error: BaseException) -> BaseException | None:
    """Horo's exception behind an error of JAX; None when there is none."""
    global _failure
    found = _failure
    if found is None or isinstance(error, errors.HoroError) or str(found) not in str(error):
        return None
    _failure = None
    return found


class GradientReducer(ListReducer):
    """One call reduces all gradients of a step, also those of groups. Calls need no further order: each step computes with
    the results of the one before."""

    def divided(self, gradient):
        return gradient / of(self.rules.process_set).size()

    def _bunches(self, places, owners):
        """All gradients in one call. Each call blocks a thread, and XLA could start several of them in
        another order on each rank."""
        return [self.together(places, owners)] if places else []

    def reduce_dense(self, gradients, base, bunch):
        rules = self.rules
        packed = [rules.compression.compress(one) for one in gradients]
        inputs = [one for one, _ in packed]

        def on_host(*arrays):
            global _failure
            try:
                return self._reduce_arrays(arrays, base, bunch)
            except errors.HoroError as error:
                _failure = error  # JAX raises an error of its own, with these words
                raise

        shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in inputs]
        results = io_callback(on_host, shapes, *inputs)
        return [rules.compression.decompress(one, kept) for one, (_, kept) in zip(results, packed)]

    def _reduce_arrays(self, arrays, base, bunch):
        rules, factor = self.rules, self.rules.gradient_predivide_factor
        handles = [
            horo.allreduce_async(
                numpy.asarray(one),
                name=f"keras.{base}.{part}",
                op=rules.op,
                prescale_factor=1.0 / factor,
                postscale_factor=factor,
                process_set=rules.process_set,
            )
            for one, part in zip(arrays, bunch.parts)
        ]
        return [horo.synchronize(handle) for handle in handles]
