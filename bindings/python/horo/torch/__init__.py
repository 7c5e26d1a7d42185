# SPDX-License-Identifier: Apache-2.0
"""Horo for PyTorch: any torch from 1.13 on, without a build of its own.

    import horo.torch as horo

    horo.init()
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    horo.broadcast_parameters(model.state_dict(), root_rank=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from horo.torch import _torch  # first: says so where there is no torch
from horo._core import (
    ADASUM as Adasum,
    AVERAGE as Average,
    MAX as Max,
    MIN as Min,
    PRODUCT as Product,
    SUM as Sum,
    counters,
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    poll,
    rank,
    size,
    start_timeline,
    stop_timeline,
    synchronize,
)
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
from horo._native import version as _version
from horo._sets import (
    ProcessSet,
    add_process_set,
    barrier,
    get_process_set_ids_and_ranks,
    global_process_set,
    init,
    is_process_set_included,
    join as _join,
    of as _of,
    remove_process_set,
    shutdown,
)
from horo.errors import (
    DuplicateNameError,
    ForkedError,
    HoroError,
    MismatchError,
    NotInitializedError,
    PeerLostError,
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
from horo.torch._gradients import finish_sparse as _finish_sparse, start_sparse as _start_sparse
from horo.torch._memory import alloc_like, shared_empty, shared_zeros
from horo.torch._objects import allgather_object, broadcast_object
from horo.torch._optimizer import DistributedOptimizer
from horo.torch._state import broadcast_optimizer_state, broadcast_parameters
from horo.torch._sync_batch_norm import SyncBatchNorm

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

__version__ = _version

# The name under which Horovod's users catch failures of the runtime.
HorovodInternalError = HoroError


def sparse_allreduce_async(
    tensor: Tensor, name: str, op: int, process_set: ProcessSet = global_process_set
) -> Callable[[], Tensor]:
    """Starts reducing a sparse tensor; call what it returns for the result."""
    names = _of(process_set)
    if op not in (Average, Sum):
        raise ValueError("sparse tensors reduce by Average or Sum only")
    handle, shape = _start_sparse(tensor, names, name), tensor.shape
    return lambda: _finish_sparse(handle, shape, names, op)


def join(device: int = -1, process_set: ProcessSet = global_process_set) -> int:
    """Says that this rank has no more data and blocks until all ranks of the set have said so;
    until then it takes part in their allreduces without changing a sum. Returns the rank that
    joined last, alike on all ranks. When interrupted, call it again. `device` is not needed."""
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
