# SPDX-License-Identifier: Apache-2.0
"""Callbacks for tf.keras, whichever Keras it is."""

import tensorflow as tf

from horo.keras import _callbacks


class BroadcastGlobalVariablesCallback(_callbacks.Broadcast, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.Broadcast.__doc__


class MetricAverageCallback(_callbacks.MetricAverage, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.MetricAverage.__doc__


class LearningRateScheduleCallback(_callbacks.LearningRateSchedule, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.LearningRateSchedule.__doc__


class LearningRateWarmupCallback(_callbacks.LearningRateWarmup, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.LearningRateWarmup.__doc__


class CommitStateCallback(_callbacks.CommitState, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.CommitState.__doc__


class UpdateBatchStateCallback(_callbacks.UpdateBatchState, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.UpdateBatchState.__doc__


class UpdateEpochStateCallback(_callbacks.UpdateEpochState, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.UpdateEpochState.__doc__


class BestModelCheckpoint(_callbacks.BestCheckpoint, tf.keras.callbacks.ModelCheckpoint):
    __doc__ = _callbacks.BestCheckpoint.__doc__


__all__ = [
    "BestModelCheckpoint",
    "BroadcastGlobalVariablesCallback",
    "CommitStateCallback",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
]
