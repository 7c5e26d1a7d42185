# SPDX-License-Identifier: Apache-2.0
"""Python objects from one rank to all, and from all ranks to all, by pickle.

When one rank cannot pickle its object, it tells the others, which would wait for ever otherwise.
Unpickling runs code that the sender chose, so bytes that have passed between hosts are unpickled
only if they are signed with the job's secret.
"""

from __future__ import annotations

import hmac
import io
import pickle
import struct
from typing import TYPE_CHECKING

from horo import _handles, _job, errors
from horo._byte_rows import BYTES, ByteRows
from horo._native import fast
from horo._sets import global_process_set, of

if TYPE_CHECKING:
    from typing import Any

    from horo._sets import ProcessSet

_LENGTH = struct.Struct("<q")  # bytes of the pickled object; -1 when it could not be pickled
_NUMBER = struct.Struct("<q")
_TAG = 32


class _Seal:
    """Signs bytes with a key of the job, for a set on several hosts. On one host, where ranks share
    memory that only their user can open, signatures are empty.

    Nothing in a signature tells a call from an earlier one of the same set, name and rank. Ranks
    cannot count calls alike: one may be interrupted, or submit a call that does not match those of
    the others, and call again. So an attacker on the network can replay an older object."""

    def __init__(self, names, name):
        """`names`: those of the set. `name`: the user's name of the operation, or None."""
        self._key = _job.key("objects") if _job.backend(names.set) not in (None, "shm") else None
        self._set = names.set
        self._name = (name or "").encode()
        self.size = 0 if self._key is None else _TAG

    def sign(self, what: bytes, rank: int, body) -> bytes:
        """The signature of `body`, which `rank` sends as `what`."""
        if self._key is None:
            return b""
        code = hmac.new(self._key, digestmod="sha256")
        numbers = (_NUMBER.pack(one) for one in (self._set, rank, len(self._name)))
        for part in (what, *numbers, self._name, body):
            code.update(part)
        return code.digest()

    def require(self, tag, what: bytes, rank: int, body) -> None:
        """Fails: HoroError (the signature is not that of a rank of this job)."""
        if not hmac.compare_digest(bytes(tag), self.sign(what, rank, body)):
            raise errors.HoroError(
                f"the object of rank {rank} was changed on its way, or another process than a rank "
                "of this job has sent it: its signature is wrong, so it is not unpickled; protect "
                "the network between the hosts"
            )


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
    seal = _Seal(names, name)
    body, problem = None, None
    if at_root:
        try:
            body = ByteRows(dumps(obj))
        except Exception as error:
            problem = error
    start = bytearray(_LENGTH.pack(-1 if body is None else len(body.data)))
    start += seal.sign(b"body", root_rank, b"" if body is None else body.data)
    head = ByteRows(start + seal.sign(b"head", root_rank, start))
    _handles.synchronize(BYTES.start_broadcast(head, head, root_rank, names, size_name))
    if problem is not None:
        raise problem
    told = memoryview(head.data)
    end = _LENGTH.size + seal.size
    seal.require(told[end:], b"head", root_rank, told[:end])
    (length,) = _LENGTH.unpack(told[: _LENGTH.size])
    if length < 0:
        raise errors.HoroError(f"rank {root_rank} could not pickle the object to broadcast")
    if body is None:
        body = ByteRows(bytearray(length))
    _handles.synchronize(BYTES.start_broadcast(body, body, root_rank, names, data_name))
    if at_root:
        return obj
    seal.require(told[_LENGTH.size : end], b"body", root_rank, body.data)
    return pickle.loads(body.data)


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
    seal = _Seal(names, name)
    own: Any = ByteRows(body)
    if seal.size:
        position = fast.horo_process_set_rank(names.set)
        own = ByteRows(bytearray(body) + seal.sign(b"row", position, body))
    handle = BYTES.start_allgather(own, names, name, want_rows=True)
    gathered, lengths = _handles.synchronize(handle)
    if problem is not None:
        raise problem
    return _loads_all(memoryview(gathered.data), lengths, seal)


def _loads_all(blob, lengths, seal):
    """The objects of all ranks, which follow each other in `blob`. Fails: HoroError (a rank could
    not pickle its object, or a signature is wrong)."""
    objects, start = [], 0
    for rank, length in enumerate(lengths):
        row = blob[start : start + length]
        end = max(length - seal.size, 0)
        seal.require(row[end:], b"row", rank, row[:end])
        objects.append(pickle.loads(row[:end]))
        start += length
        if isinstance(objects[-1], Refused):
            raise errors.HoroError(
                f"rank {rank} of the process set could not pickle its object: "
                f"{objects[-1].reason}"
            )
    return objects
