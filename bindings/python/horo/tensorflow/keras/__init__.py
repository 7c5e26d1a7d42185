# SPDX-License-Identifier: Apache-2.0
"""Horo for tf.keras, which is Keras 2 up to TensorFlow 2.15 and Keras 3 afterwards.

    import horo.tensorflow.keras as horo
"""

from __future__ import annotations

from typing import Any

import tensorflow as _tf

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
from horo._objects import allgather_object, broadcast_object
from horo._sets import (
    ProcessSet,
    add_process_set,
    get_process_set_ids_and_ranks,
    global_process_set,
    is_process_set_included,
    remove_process_set,
)
from horo.errors import HoroError
from horo.keras._api import DistributedOptimizer, PartialDistributedOptimizer
from horo.keras._api import load_with as _load_with
from horo.keras._compression import Compression
from horo.keras._values import allgather, allreduce, broadcast, reducescatter
from horo.tensorflow import HorovodInternalError, broadcast_global_variables
from horo.tensorflow.keras import callbacks, elastic

__version__ = _version


def load_model(
    filepath: Any,
    custom_optimizers: Any = None,
    custom_objects: Any = None,
    compression: Any = Compression.none,
    legacy_opts: bool = False,
) -> Any:
    """A model from a file, with its optimizer as a DistributedOptimizer. The classes in
    `custom_optimizers` are known by their names, as `custom_objects` are."""
    del legacy_opts
    known = {one.__name__: one for one in custom_optimizers or ()}
    return _load_with(_tf.keras.models, filepath, {**known, **(custom_objects or {})}, compression)


__all__ = [
    "Adasum",
    "add_process_set",
    "allgather",
    "allgather_object",
    "allreduce",
    "Average",
    "barrier",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_object",
    "callbacks",
    "ccl_built",
    "Compression",
    "counters",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "DistributedOptimizer",
    "elastic",
    "get_process_set_ids_and_ranks",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "HoroError",
    "HorovodInternalError",
    "init",
    "is_homogeneous",
    "is_initialized",
    "is_process_set_included",
    "load_model",
    "local_rank",
    "local_size",
    "Max",
    "Min",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "PartialDistributedOptimizer",
    "ProcessSet",
    "Product",
    "rank",
    "reducescatter",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
    "Sum",
]
