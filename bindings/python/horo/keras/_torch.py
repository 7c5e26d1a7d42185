# SPDX-License-Identifier: Apache-2.0
"""Gradients of Keras on torch."""

from __future__ import annotations

import torch

import horo.torch as horo
from horo._optimizer.gradient_lists import ListReducer
from horo._sets import of


class GradientReducer(ListReducer):
    """Reduces the gradients in place."""

    def divided(self, gradient):
        return gradient / of(self.rules.process_set).size()

    def reduce_dense(self, gradients, base, bunch):
        rules, factor = self.rules, self.rules.gradient_predivide_factor
        packed = [rules.compression.compress(one.contiguous()) for one in gradients]
        handles = [
            horo.allreduce_async_(
                one,
                name=f"keras.{base}.{part}",
                op=rules.op,
                prescale_factor=1.0 / factor,
                postscale_factor=factor,
                process_set=rules.process_set,
            )
            for (one, _), part in zip(packed, bunch.parts)
        ]
        results = [horo.synchronize(handle) for handle in handles]
        return [rules.compression.decompress(one, kept) for one, (_, kept) in zip(results, packed)]


class Passes:
    """Adds up the gradients of several backward passes. `average`: the sum is divided by their
    number."""

    def __init__(self, passes: int, average: bool) -> None:
        self._passes = passes
        self._average = average
        self._done = 0
        self._sums: list = []

    def run(self, gradients, variables, step) -> None:
        """Adds the gradients. After the last pass, calls step(sums) and begins anew."""
        del variables
        with torch.no_grad():
            if not self._sums:
                self._sums = [None if one is None else torch.zeros_like(one) for one in gradients]
            for total, one in zip(self._sums, gradients):
                if one is not None:
                    total.add_(one)
            self._done += 1
            if self._done < self._passes:
                return
            scale = 1 / self._passes if self._average else 1
            sums = [None if one is None else one * scale for one in self._sums]
            self._done, self._sums = 0, []
        step(sums)
