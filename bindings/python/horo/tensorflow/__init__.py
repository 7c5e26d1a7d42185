# SPDX-License-Identifier: Apache-2.0
"""Horo for TensorFlow, from TensorFlow 2.12 on. It needs no build for a TensorFlow version.

    import horo.tensorflow as horo

    horo.init()
    with tf.GradientTape() as tape:
        loss = ...
    tape = horo.DistributedGradientTape(tape)
    horo.broadcast_variables(model.variables, root_rank=0)

For models of Keras see horo.keras.
"""

from __future__ import annotations

from typing import Any as _Any

from horo.tensorflow import _tensorflow  # first: explains when TensorFlow is missing
from horo._arguments import (
    ADASUM as Adasum,
    AVERAGE as Average,
    MAX as Max,
    MIN as Min,
    PRODUCT as Product,
    SUM as Sum,
)
from horo._barrier import barrier
from horo._built import (
    ccl_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
)
from horo._built_on_host import cuda_built, nccl_built, rocm_built
from horo._job import (
    counters,
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    size,
    start_timeline,
    stop_timeline,
)
from horo._life import init, shutdown
from horo._native import version as _version
from horo._sets import (
    ProcessSet,
    add_process_set,
    get_process_set_ids_and_ranks,
    global_process_set,
    is_process_set_included,
    remove_process_set,
)
from horo.errors import (
    DuplicateNameError,
    ForkedError,
    HoroError,
    MismatchError,
    NotInitializedError,
    PeerLostError,
    RemovedError,
    ShutDownError,
)
from horo.tensorflow import _gradients
from horo.tensorflow._collectives import (
    allgather,
    allreduce,
    alltoall,
    broadcast,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    local_rank_op,
    local_size_op,
    process_set_included_op,
    rank_op,
    reducescatter,
    size_op,
)
from horo.tensorflow._compression import Compression
from horo.tensorflow._exchange import (
    allgather_object,
    broadcast_object,
    broadcast_object_fn,
    join,
)
from horo.tensorflow._optimizer import DistributedOptimizer
from horo.tensorflow._tape import DistributedGradientTape, PartialDistributedGradientTape
from horo.tensorflow._variables import (
    BroadcastGlobalVariablesHook,
    broadcast_,
    broadcast_global_variables,
    broadcast_variables,
)
from horo.tensorflow import elastic

__version__ = _version

# The name by which programs for Horovod catch failures of the runtime.
HorovodInternalError = HoroError


def __getattr__(name: str) -> _Any:
    """SyncBatchNormalization needs Keras, whose import takes a second or more."""
    if name == "SyncBatchNormalization":
        from horo.tensorflow._sync_batch_norm import SyncBatchNormalization

        return SyncBatchNormalization
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Adasum",
    "add_process_set",
    "allgather",
    "allgather_object",
    "allreduce",
    "alltoall",
    "Average",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_object_fn",
    "broadcast_variables",
    "BroadcastGlobalVariablesHook",
    "ccl_built",
    "Compression",
    "counters",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "DuplicateNameError",
    "elastic",
    "ForkedError",
    "get_process_set_ids_and_ranks",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allreduce",
    "grouped_reducescatter",
    "HoroError",
    "HorovodInternalError",
    "init",
    "is_homogeneous",
    "is_initialized",
    "is_process_set_included",
    "join",
    "local_rank",
    "local_rank_op",
    "local_size",
    "local_size_op",
    "Max",
    "Min",
    "MismatchError",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "NotInitializedError",
    "PartialDistributedGradientTape",
    "PeerLostError",
    "process_set_included_op",
    "ProcessSet",
    "Product",
    "rank",
    "rank_op",
    "reducescatter",
    "remove_process_set",
    "RemovedError",
    "rocm_built",
    "shutdown",
    "ShutDownError",
    "size",
    "size_op",
    "start_timeline",
    "stop_timeline",
    "Sum",
    # Not SyncBatchNormalization: `import *` would import Keras for it.
]
