# SPDX-License-Identifier: Apache-2.0
"""Horo for JAX, from jax 0.4.38 on, inside jit and outside. It needs no build for a jax version.

    import horo.jax as horo

    horo.init()
    params = horo.broadcast_parameters(params, root_rank=0)
    loss_and_gradients = jax.jit(horo.value_and_grad(loss))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from horo.jax import _jax  # first: explains when jax is missing
from horo._arguments import (
    ADASUM as Adasum,
    AVERAGE as Average,
    MAX as Max,
    MIN as Min,
    PRODUCT as Product,
    SUM as Sum,
)
from horo._barrier import join
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
from horo.jax._collectives import (
    allgather,
    allgather_async,
    allreduce,
    allreduce_async,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_async,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_async,
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from horo.jax._compression import Compression
from horo.jax._life import init, shutdown
from horo.jax._optimizer import DistributedOptimizer, grad, value_and_grad
from horo.jax._trees import allreduce_tree, broadcast_parameters

if TYPE_CHECKING:
    from horo.jax import elastic


def __getattr__(name: str) -> Any:
    """horo.jax.elastic is imported by its first use, because most trainings do not need it."""
    if name == "elastic":
        return importlib.import_module("horo.jax.elastic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Adasum",
    "add_process_set",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_async",
    "allreduce_tree",
    "alltoall",
    "alltoall_async",
    "Average",
    "barrier",
    "broadcast",
    "broadcast_async",
    "broadcast_object",
    "broadcast_parameters",
    "Compression",
    "counters",
    "cross_rank",
    "cross_size",
    "DistributedOptimizer",
    "DuplicateNameError",
    "ForkedError",
    "get_process_set_ids_and_ranks",
    "global_process_set",
    "grad",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_async",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "HoroError",
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
    "shutdown",
    "ShutDownError",
    "size",
    "start_timeline",
    "stop_timeline",
    "Sum",
    "synchronize",
    "value_and_grad",
]
