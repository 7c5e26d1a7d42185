# SPDX-License-Identifier: Apache-2.0
"""Collectives on values that are there: numbers, arrays and tensors of any backend, outside of
compiled functions. Results are numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy

import horo.numpy as collectives
from horo._arguments import AVERAGE, resolve_op
from horo._elastic.keras_state import array_of
from horo._sets import global_process_set
from horo.keras._compression import Compression


def _array(value):
    found = array_of(value)
    return found if found.dtype != object else numpy.asarray(value)


def allreduce(
    value: Any,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: int | None = None,
    compression: Any = Compression.none,
    process_set: Any = global_process_set,
) -> Any:
    """Reduces the values of all ranks: their average, unless `op` says otherwise. `compression` has no
    effect: such values are small."""
    del compression
    factors = (prescale_factor, postscale_factor)
    return collectives.allreduce(
        _array(value), name, resolve_op(average, op), *factors, process_set
    )


def allgather(value: Any, name: str | None = None, process_set: Any = global_process_set) -> Any:
    """The values of all ranks, concatenated along dimension 0 in rank order."""
    return collectives.allgather(_array(value), name, process_set)


def broadcast(
    value: Any, root_rank: int, name: str | None = None, process_set: Any = global_process_set
) -> Any:
    """The root's value on every rank."""
    return collectives.broadcast(_array(value), root_rank, name, process_set)


def reducescatter(
    value: Any,
    name: str | None = None,
    op: int = AVERAGE,
    process_set: Any = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Reduces the values of all ranks and gives each rank its rows."""
    factors = (prescale_factor, postscale_factor)
    return collectives.reducescatter(_array(value), name, op, *factors, process_set)
