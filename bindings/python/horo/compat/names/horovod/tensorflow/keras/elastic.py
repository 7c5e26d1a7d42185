# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow.keras.elastic under Horovod's name."""

from horo.tensorflow.keras.elastic import (
    CommitStateCallback,
    KerasState,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
    run,
)
