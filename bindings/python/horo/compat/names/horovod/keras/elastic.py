# SPDX-License-Identifier: Apache-2.0
"""horo.keras.elastic under Horovod's name."""

from horo.keras.elastic import (
    CommitStateCallback,
    KerasState,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
    run,
)
