# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow.elastic with the callbacks of tf.keras."""

from __future__ import annotations

from horo.tensorflow.elastic import (
    HostsUpdatedInterrupt,
    ObjectState,
    State,
    generation,
    is_elastic,
    pending_change,
    run,
    run_fn,
    survivors,
)
from horo.tensorflow.elastic import TensorFlowKerasState as KerasState
from horo.tensorflow.keras.callbacks import (
    CommitStateCallback,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
)

__all__ = [
    "CommitStateCallback",
    "generation",
    "HostsUpdatedInterrupt",
    "is_elastic",
    "KerasState",
    "ObjectState",
    "pending_change",
    "run",
    "run_fn",
    "State",
    "survivors",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
]
