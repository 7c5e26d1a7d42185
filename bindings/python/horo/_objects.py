# SPDX-License-Identifier: Apache-2.0
"""Python objects from one rank to all, and from all ranks to all, by pickle.

When one rank cannot pickle its object, it tells the others, which would wait for ever otherwise.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import TYPE_CHECKING

from horo import _handles, _job, errors
from horo._byte_rows import BYTES, ByteRows
from horo._sets import global_process_set, of

if TYPE_CHECKING:
    from typing import Any

    from horo._sets import ProcessSet

_LENGTH = struct.Struct("<q")  # bytes of the pickled object; -1 when it could not be pickled


class Refused:
    """Travels in place of an object that could not be pickled or moved."""

    def __init__(self, reason):
        self.reason = reason


def dumps(obj: Any) -> memoryview:
    """The pickled object. What pickle refuses, such as a lambda, is pickled by cloudpickle if it is
    installed."""
    buffer = io.BytesIO()
    try:
        pickle.dump(obj, buffer, pickle.HIGHEST_PROTOCOL)
    except Exception:
        try:
            import cloudpickle
        except ImportError:
            cloudpickle = None
        if cloudpickle is None:
            raise
        buffer = io.BytesIO()
        cloudpickle.dump(obj, buffer)
    return buffer.getbuffer()


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns the root's `obj` on every rank, by pickle. Fails on all ranks when it cannot be
    pickled."""
    names = of(process_set)
    size_name, data_name = (None, None) if name is None else (f"{name}.sz", f"{name}.t")
    at_root = _job.rank() == root_rank
    body, problem = None, None
    if at_root:
        try:
            body = ByteRows(dumps(obj))
        except Exception as error:
            problem = error
    length = -1 if body is None else len(body.data)
    head = ByteRows(bytearray(_LENGTH.pack(length)))
    _handles.synchronize(BYTES.start_broadcast(head, head, root_rank, names, size_name))
    if problem is not None:
        raise problem
    (length,) = _LENGTH.unpack(head.data)
    if length < 0:
        raise errors.HoroError(f"rank {root_rank} could not pickle the object to broadcast")
    if body is None:
        body = ByteRows(bytearray(length))
    _handles.synchronize(BYTES.start_broadcast(body, body, root_rank, names, data_name))
    return obj if at_root else pickle.loads(body.data)


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Returns the objects of all ranks as a list in rank order, by pickle. Fails on all ranks when
    one object cannot be pickled."""
    return gather_objects(obj, of(process_set), name)


def gather_objects(obj, names, name):
    """Like allgather_object, for the names of a set."""
    problem = None
    try:
        body = dumps(obj)
    except Exception as error:
        body, problem = dumps(Refused(f"{type(error).__name__}: {error}")), error
    handle = BYTES.start_allgather(ByteRows(body), names, name, want_rows=True)
    gathered, lengths = _handles.synchronize(handle)
    if problem is not None:
        raise problem
    return _loads_all(memoryview(gathered.data), lengths)


def _loads_all(blob, lengths):
    """The objects of all ranks, which follow each other in `blob`. Fails: HoroError (a rank could
    not pickle its object)."""
    objects, start = [], 0
    for rank, length in enumerate(lengths):
        objects.append(pickle.loads(blob[start : start + length]))
        start += length
        if isinstance(objects[-1], Refused):
            raise errors.HoroError(
                f"rank {rank} of the process set could not pickle its object: "
                f"{objects[-1].reason}"
            )
    return objects
