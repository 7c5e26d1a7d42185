# SPDX-License-Identifier: Apache-2.0
"""Horo for MXNet 1.9. It needs no build for MXNet.

    import horo.mxnet as horo

    horo.init()
    horo.broadcast_parameters(net.collect_params(), root_rank=0)
    trainer = horo.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

Each collective returns when its result is there, and all ranks call them in one order.
"""

from __future__ import annotations

from horo.mxnet import _mxnet  # first: explains when MXNet is missing
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
from horo.mxnet._collectives import (
    allgather,
    allreduce,
    allreduce_,
    alltoall,
    broadcast,
    broadcast_,
    grouped_allgather,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_reducescatter,
    reducescatter,
)
from horo.mxnet._compression import Compression
from horo.mxnet._optimizer import DistributedOptimizer, DistributedTrainer
from horo.mxnet._parameters import broadcast_parameters

__version__ = _version

# The name by which programs for Horovod catch failures of the runtime.
HorovodInternalError = HoroError

__all__ = [
    "Adasum",
    "add_process_set",
    "allgather",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "alltoall",
    "Average",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_object",
    "broadcast_parameters",
    "ccl_built",
    "Compression",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "DistributedOptimizer",
    "DistributedTrainer",
    "get_process_set_ids_and_ranks",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_reducescatter",
    "HoroError",
    "HorovodInternalError",
    "init",
    "is_homogeneous",
    "is_initialized",
    "is_process_set_included",
    "local_rank",
    "local_size",
    "Max",
    "Min",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
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
