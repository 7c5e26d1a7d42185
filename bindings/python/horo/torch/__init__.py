# SPDX-License-Identifier: Apache-2.0
"""Horo for PyTorch: any torch from 1.13 on, without a build of its own.

    import horo.torch as horo

    horo.init()
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    horo.broadcast_parameters(model.state_dict(), root_rank=0)
"""

from horo._core import (
    ADASUM as Adasum,
    AVERAGE as Average,
    MAX as Max,
    MIN as Min,
    PRODUCT as Product,
    SUM as Sum,
    barrier as _barrier,
    counters,
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    poll,
    rank,
    shutdown,
    size,
    synchronize,
)
from horo._limits import (
    ProcessSet,
    check_process_set as _check_process_set,
    global_process_set,
    unavailable as _unavailable,
)
from horo._native import version as _version
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
from horo.torch._optimizer import DistributedOptimizer
from horo.torch._state import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)

__version__ = _version

# The name under which Horovod's users catch failures of the runtime.
HorovodInternalError = HoroError


def barrier(process_set=None):
    """Blocks until all ranks have called it."""
    _check_process_set(process_set)
    _barrier()


def sparse_allreduce_async(tensor, name, op, process_set=None):
    """Starts reducing a sparse tensor; call what it returns for the result."""
    _check_process_set(process_set)
    if op not in (Average, Sum):
        raise ValueError("sparse tensors reduce by Average or Sum only")
    handles, shape = _start_sparse(tensor, name), tensor.shape
    return lambda: _finish_sparse(handles, shape, op)


join = _unavailable("join")
add_process_set = _unavailable("add_process_set")
remove_process_set = _unavailable("remove_process_set")
SyncBatchNorm = _unavailable("SyncBatchNorm")
