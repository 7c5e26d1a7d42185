# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNormalization: batch normalization over the batches of all ranks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from horo import _job
from horo._arguments import SUM
from horo._sets import WORLD
from horo.tensorflow import _ops


def _count(inputs, axes):
    """The number of values of one feature in this rank's batch."""
    return tf.reduce_prod(tf.gather(tf.shape(inputs), [axis % len(inputs.shape) for axis in axes]))


def _over_ranks(mean, variance, inputs, axes):
    """Mean and variance over the batches of all ranks, from those of this rank."""
    if _job.size() == 1:
        return mean, variance
    dtype = mean.dtype
    mean, variance = tf.cast(mean, tf.float32), tf.cast(variance, tf.float32)
    count = tf.cast(_count(inputs, axes), tf.float32)
    sums = [count * mean, count * (variance + tf.square(mean)), count]
    total, squares, values = _ops.allreduce(sums, _ops.Group(WORLD), _ops.Reduction(SUM))
    mean = total / values
    variance = tf.maximum(squares / values - tf.square(mean), 0.0)
    return tf.cast(mean, dtype), tf.cast(variance, dtype)


_Base: Any = tf.keras.layers.BatchNormalization


class _Version2(_Base):
    def _moments(self, inputs: Any, reduction_axes: Any, keep_dims: Any, mask: Any = None) -> Any:
        own = super()._moments(inputs, reduction_axes, keep_dims, mask=mask)
        return _over_ranks(own[0], own[1], inputs, reduction_axes)


class _Version3(_Base):
    def _moments(self, inputs: Any, mask: Any) -> Any:
        own = super()._moments(inputs, mask)
        return _over_ranks(own[0], own[1], inputs, self._reduction_axes)


_IS_KERAS_2 = hasattr(_Base, "_calculate_mean_and_var")


class SyncBatchNormalization(_Version2 if _IS_KERAS_2 else _Version3):  # type: ignore[misc]
    """Like tf.keras.layers.BatchNormalization, with the mean and the variance over the batches of all
    ranks, which may have different sizes. A mask counts as if it were the same on all ranks."""

    def __init__(self, fused: Any = False, **kwargs: Any) -> None:
        if fused:
            raise ValueError("SyncBatchNormalization has no fused form; leave fused= away")
        super().__init__(**({"fused": False} if _IS_KERAS_2 else {}), **kwargs)
