# SPDX-License-Identifier: Apache-2.0
"""Sums of sparse tensors: the ranks gather indices and values, and each rank adds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from horo import _handles
from horo._arguments import AVERAGE, SUM
from horo._sets import global_process_set, of
from horo.torch._face import TORCH, need_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from horo._sets import ProcessSet

# Indices from other ranks are checked. torch before 2.0 has no such switch and always checks.
_CHECKS = hasattr(torch.sparse, "check_sparse_tensor_invariants")
_CHECKED = {"check_invariants": True} if _CHECKS else {}


def sparse_tensor(indices, values, shape):
    """A sparse tensor whose indices are checked."""
    return torch.sparse_coo_tensor(indices, values, shape, device=values.device, **_CHECKED)


def start_sparse(tensor, names, name):
    """Starts gathering a sparse tensor's indices and values. Returns one handle for both."""
    need_tensor(tensor)
    if tensor.layout is not torch.sparse_coo:
        raise ValueError(f"layout {tensor.layout} is not torch.sparse_coo; use to_sparse()")
    tensor = tensor.coalesce()
    indices = tensor.indices().t().contiguous()
    values = tensor.values().contiguous()
    first = TORCH.start_allgather(indices, names, name and name + ".indices")
    second = TORCH.start_allgather(values, names, name and name + ".values")
    return _handles.group([first, second])


def finish_sparse(handle, shape, names, op):
    """The sum or the average of the ranks' sparse tensors."""
    indices, values = _handles.synchronize(handle)
    if op == AVERAGE:
        values = values / names.size()
    return sparse_tensor(indices.t(), values, shape).coalesce()


def sparse_allreduce_async(
    tensor: Tensor, name: str, op: int, process_set: ProcessSet = global_process_set
) -> Callable[[], Tensor]:
    """Starts reducing a sparse tensor. Returns a function that waits for the result."""
    names = of(process_set)
    if op not in (AVERAGE, SUM):
        raise ValueError("sparse tensors reduce by Average or Sum only")
    handle, shape = start_sparse(tensor, names, name), tensor.shape
    return lambda: finish_sparse(handle, shape, names, op)
