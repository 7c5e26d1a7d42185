# SPDX-License-Identifier: Apache-2.0
"""Reduces all gradients of a step as tensors of TensorFlow."""

from __future__ import annotations

import tensorflow as tf

from horo._native import ALLREDUCE
from horo._optimizer.gradient_lists import ListReducer
from horo._sets import of
from horo.tensorflow import _names, _ops
from horo.tensorflow._collectives import reduce_all, sparse_allreduce
from horo.tensorflow._module import ASYNCHRONOUS


class GradientReducer(ListReducer):
    """In a graph each gradient has an op of its own, which starts as soon as the gradient is there.
    Where an op blocks a thread, and in an eager call, one op reduces all."""

    def base_name(self):
        return _names.call_name(ALLREDUCE, None) or super().base_name()

    def one_by_one(self):
        return ASYNCHRONOUS and not tf.executing_eagerly()

    def is_sparse(self, gradient):
        return isinstance(gradient, tf.IndexedSlices)

    def dense(self, gradient):
        return tf.convert_to_tensor(gradient)

    def divided(self, gradient):
        size = _ops.place("set_size", of(self.rules.process_set).set)
        if isinstance(gradient, tf.IndexedSlices):
            values = gradient.values / tf.cast(size, gradient.values.dtype)
            return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return gradient / tf.cast(size, gradient.dtype)

    def reduce_sparse(self, gradient, name):
        rules = self.rules
        group = _ops.Group(of(rules.process_set), name)
        return sparse_allreduce(gradient, rules.op, group, rules.compression)

    def reduce_dense(self, gradients, base, bunch):
        rules, factor = self.rules, self.rules.gradient_predivide_factor
        reduction = _ops.Reduction(rules.op, 1.0 / factor, factor)
        group = _ops.Group(of(rules.process_set), base, bunch.grouped, bunch.parts)
        return reduce_all(gradients, rules.compression, _ops.allreduce, group, reduction)
