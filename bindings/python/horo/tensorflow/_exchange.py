# SPDX-License-Identifier: Apache-2.0
"""Objects between ranks, with Horovod's parameters. `session` has no effect: objects do not travel
through a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horo import _objects
from horo._barrier import join as _join
from horo._sets import global_process_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from horo._sets import ProcessSet


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns the root's `obj` on every rank, by pickle. Fails on all ranks when it cannot be
    pickled."""
    del session
    return _objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:
    """broadcast_object() as a function of the object alone."""
    del session
    return lambda obj: _objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(
    obj: Any,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Returns the objects of all ranks as a list in rank order, by pickle. Fails on all ranks when
    one object cannot be pickled."""
    del session
    return _objects.allgather_object(obj, name, process_set)


def join(process_set: ProcessSet = global_process_set) -> int:
    """Tells the set that this rank has no more data, and blocks until all its ranks have joined. Until
    then this rank takes part in their allreduces without changing a sum. Returns the rank that joined
    last, which is the same on all ranks. Call it outside of tf.function."""
    return _join(process_set)
