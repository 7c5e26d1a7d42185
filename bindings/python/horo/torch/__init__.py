# SPDX-License-Identifier: Apache-2.0
"""Horo for PyTorch, from torch 1.13 on. It needs no build for a torch version.

    import horo.torch as horo

    horo.init()
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    horo.broadcast_parameters(model.state_dict(), root_rank=0)
"""

from __future__ import annotations

from horo.torch import _torch  # first: explains when torch is missing
from horo.torch import elastic
from horo._arguments import (
    ADASUM as Adasum,
    AVERAGE as Average,
    MAX as Max,
    MIN as Min,
    PRODUCT as Product,
    SUM as Sum,
)
from horo._barrier import barrier, join as _join
from horo._built import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from horo._handles import poll, synchronize
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
from horo.torch._autograd import (
    allgather,
    allreduce,
    alltoall,
    broadcast,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    reducescatter,
)
from horo.torch._collectives import (
    allgather_async,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall_async,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather_async,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter_async,
    reducescatter_async,
)
from horo.torch._compression import Compression
from horo.torch._memory import alloc_like, shared_empty, shared_zeros
from horo.torch._optimizer import DistributedOptimizer
from horo.torch._sparse import sparse_allreduce_async
from horo.torch._state import broadcast_optimizer_state, broadcast_parameters
from horo.torch._sync_batch_norm import SyncBatchNorm

__version__ = _version

# The name by which programs for Horovod catch failures of the runtime.
HorovodInternalError = HoroError


def join(device: int = -1, process_set: ProcessSet = global_process_set) -> int:
    """Tells the set that this rank has no more data, and blocks until all its ranks have joined.
    Until then this rank takes part in their allreduces without changing a sum. Returns the rank
    that joined last, which is the same on all ranks. When interrupted, call it again. `device` is
    not needed."""
    del device
    return _join(process_set)


__all__ = [
    "Adasum",
    "add_process_set",
    "allgather",
    "allgather_async",
    "allgather_object",
    "alloc_like",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "Average",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "ccl_built",
    "Compression",
    "counters",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "DistributedOptimizer",
    "DuplicateNameError",
    "ForkedError",
    "get_process_set_ids_and_ranks",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "HoroError",
    "HorovodInternalError",
    "init",
    "is_homogeneous",
    "is_initialized",
    "is_process_set_included",
    "join",
    "local_rank",
    "local_size",
    "Max",
    "Min",
    "MismatchError",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "NotInitializedError",
    "PeerLostError",
    "poll",
    "ProcessSet",
    "Product",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "remove_process_set",
    "RemovedError",
    "rocm_built",
    "shared_empty",
    "shared_zeros",
    "shutdown",
    "ShutDownError",
    "size",
    "sparse_allreduce_async",
    "start_timeline",
    "stop_timeline",
    "Sum",
    "SyncBatchNorm",
    "synchronize",
]
