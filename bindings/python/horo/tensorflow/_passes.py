# SPDX-License-Identifier: Apache-2.0
"""Adds up the gradients of several backward passes, for optimizers that step after the last one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class Passes:
    """Works eagerly and in a tf.function. `average`: the sum is divided by the number of passes."""

    def __init__(self, passes: int, average: bool) -> None:
        self._passes = passes
        self._average = average
        self._done: Any = None  # passes since the last step
        self._sums: list = []

    def _make(self, gradients, variables):
        """The variables must exist before a function is traced, so they are made outside of it."""
        if self._done is not None:
            return
        with tf.init_scope():
            self._done = tf.Variable(0, trainable=False, dtype=tf.int64)
            self._sums = [
                None if gradient is None else tf.Variable(tf.zeros(owner.shape, gradient.dtype))
                for gradient, owner in zip(gradients, variables)
            ]

    def run(self, gradients, variables, step) -> None:
        """Adds the gradients. After the last pass, calls step(sums) and begins anew."""
        self._make(gradients, variables)
        present = [place for place, gradient in enumerate(gradients) if gradient is not None]
        for place in present:
            self._sums[place].assign_add(tf.convert_to_tensor(gradients[place]))
        done = self._done.assign_add(1)

        def last():
            scale = self._passes if self._average else 1
            sums = [None] * len(gradients)
            for place in present:
                value = tf.identity(self._sums[place])
                sums[place] = value / tf.cast(scale, value.dtype)
            step(sums)
            for place in present:
                self._sums[place].assign(tf.zeros_like(self._sums[place]))
            self._done.assign(0)
            return tf.constant(True)

        tf.cond(tf.equal(done, self._passes), last, lambda: tf.constant(False))
