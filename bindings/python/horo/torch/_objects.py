# SPDX-License-Identifier: Apache-2.0
"""Python objects from one rank to all, and from all to all, by pickle."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import torch

from horo import _core, errors
from horo._pickled import dumps, dumps_or_refused, loads_all
from horo._sets import global_process_set, of
from horo.torch._collectives import broadcast_, start_allgather

if TYPE_CHECKING:
    from typing import Any

    from horo._sets import ProcessSet


def _tensor(body):
    return torch.frombuffer(body, dtype=torch.uint8)


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The root's `obj` on every rank, by pickle. Fails on all ranks when it cannot be pickled."""
    of(process_set)
    size_name, data_name = (None, None) if name is None else (f"{name}.sz", f"{name}.t")
    at_root = _core.rank() == root_rank
    body, problem = None, None
    if at_root:
        try:
            body = _tensor(dumps(obj))
        except Exception as error:
            problem = error
    length = torch.tensor([-1 if body is None else len(body)], dtype=torch.int64, device="cpu")
    broadcast_(length, root_rank, size_name, process_set)
    if problem is not None:
        raise problem
    if length.item() < 0:
        raise errors.HoroError(f"rank {root_rank} could not pickle the object to broadcast")
    if body is None:
        body = torch.empty(length.item(), dtype=torch.uint8, device="cpu")
    broadcast_(body, root_rank, data_name, process_set)
    return obj if at_root else pickle.loads(body.numpy())


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """The objects of all ranks as a list in rank order, by pickle. Fails on all ranks when one cannot
    be pickled."""
    return gather_objects(obj, of(process_set), name)


def gather_objects(obj, names, name):
    """As allgather_object, by the names of a set."""
    body, problem = dumps_or_refused(obj)
    data, rows = _core.synchronize(start_allgather(_tensor(body), names, name, want_rows=True))
    return loads_all(memoryview(data.numpy()), rows, problem)
