# SPDX-License-Identifier: Apache-2.0
"""Callbacks for keras, on every backend."""

import horo.keras._keras  # explains when Keras is missing
import keras

from horo.keras import _callbacks


class BroadcastGlobalVariablesCallback(_callbacks.Broadcast, keras.callbacks.Callback):
    __doc__ = _callbacks.Broadcast.__doc__


class MetricAverageCallback(_callbacks.MetricAverage, keras.callbacks.Callback):
    __doc__ = _callbacks.MetricAverage.__doc__


class LearningRateScheduleCallback(_callbacks.LearningRateSchedule, keras.callbacks.Callback):
    __doc__ = _callbacks.LearningRateSchedule.__doc__


class LearningRateWarmupCallback(_callbacks.LearningRateWarmup, keras.callbacks.Callback):
    __doc__ = _callbacks.LearningRateWarmup.__doc__


class CommitStateCallback(_callbacks.CommitState, keras.callbacks.Callback):
    __doc__ = _callbacks.CommitState.__doc__


class UpdateBatchStateCallback(_callbacks.UpdateBatchState, keras.callbacks.Callback):
    __doc__ = _callbacks.UpdateBatchState.__doc__


class UpdateEpochStateCallback(_callbacks.UpdateEpochState, keras.callbacks.Callback):
    __doc__ = _callbacks.UpdateEpochState.__doc__


class BestModelCheckpoint(_callbacks.BestCheckpoint, keras.callbacks.ModelCheckpoint):
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
