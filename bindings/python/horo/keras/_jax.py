# SPDX-License-Identifier: Apache-2.0
"""Gradients of Keras on JAX. Keras compiles a whole step. On the CPU the reduction is a part of that
program; on another device it is a call from the program back to the host."""

from __future__ import annotations

import jax
import numpy
from jax.experimental import io_callback

import horo.numpy as on_host
from horo import errors
from horo._optimizer.gradient_lists import ListReducer
from horo._sets import of
from horo.jax import _ffi
from horo.jax._collectives import allreduce_parts

_failure: errors.HoroError | None = None  # the last one in a call back to the host
_told = 0  # failures in programs of which as_horo() knows


def as_horo(error: BaseException) -> BaseException | None:
    """Horo's exception behind an error of JAX; None when there is none."""
    global _failure, _told
    if isinstance(error, errors.HoroError):
        return None
    found, count = _failure, _ffi.failures()
    if found is not None and str(found) in str(error):
        _failure = None
        return found
    made = _ffi.last_failure() if count != _told else None
    if made is None or str(made) not in str(error):
        return None
    _told = count
    return made


def forget_programs() -> None:
    """Forgets compiled programs, which may be made for another number of ranks."""
    _ffi.forget()
    jax.clear_caches()


class GradientReducer(ListReducer):
    """One call reduces all gradients of a step, also those of groups. Calls need no further order: each step computes with
    the results of the one before."""

    def divided(self, gradient):
        return gradient / of(self.rules.process_set).size()

    def _bunches(self, places, owners):
        """All gradients in one call. On the host each call blocks a thread, and XLA could start several
        of them in another order on each rank."""
        return [self.together(places, owners)] if places else []

    def reduce_dense(self, gradients, base, bunch):
        compression = self.rules.compression
        packed = [compression.compress(one) for one in gradients]
        inputs = [one for one, _ in packed]
        reduce = self._in_program if jax.default_backend() == "cpu" else self._on_host
        results = reduce(inputs, base, bunch)
        return [compression.decompress(one, kept) for one, (_, kept) in zip(results, packed)]

    def _in_program(self, inputs, base, bunch):
        rules, factor = self.rules, self.rules.gradient_predivide_factor
        factors = (1.0 / factor, factor)
        return allreduce_parts(
            inputs, bunch.parts, f"keras.{base}", rules.op, factors, rules.process_set
        )

    def _on_host(self, inputs, base, bunch):
        def reduce(*arrays):
            global _failure
            try:
                return self._reduce_arrays(arrays, base, bunch)
            except errors.HoroError as error:
                _failure = error  # JAX raises an error of its own, with these words
                raise

        shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in inputs]
        return io_callback(reduce, shapes, *inputs)

    def _reduce_arrays(self, arrays, base, bunch):
        rules, factor = self.rules, self.rules.gradient_predivide_factor
        handles = [
            on_host.allreduce_async(
                numpy.asarray(one),
                name=f"keras.{base}.{part}",
                op=rules.op,
                prescale_factor=1.0 / factor,
                postscale_factor=factor,
                process_set=rules.process_set,
            )
            for one, part in zip(arrays, bunch.parts)
        ]
        return [on_host.synchronize(handle) for handle in handles]
