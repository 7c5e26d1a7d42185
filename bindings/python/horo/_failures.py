# SPDX-License-Identifier: Apache-2.0
"""Turns a horo_status of the C library into an exception."""

from __future__ import annotations

import ctypes
import re
from typing import NamedTuple

from horo import _native, errors
from horo._native import fast

_ERRORS = {
    _native.INVALID_ARGUMENT: ValueError,
    _native.UNAVAILABLE: errors.StartError,
    _native.TIMED_OUT: errors.TimeOutError,
    _native.OUT_OF_MEMORY: errors.ResourceError,
    _native.RESOURCE_EXHAUSTED: errors.ResourceError,
    _native.MISMATCH: errors.MismatchError,
    _native.DUPLICATE: errors.DuplicateNameError,
    _native.PEER_LOST: errors.PeerLostError,
    _native.SHUT_DOWN: errors.ShutDownError,
    _native.NOT_INITIALIZED: errors.NotInitializedError,
    _native.FORKED: errors.ForkedError,
    _native.UNSUPPORTED: errors.UnsupportedError,
    _native.REMOVED: errors.RemovedError,
    _native.VERSION_MISMATCH: errors.LibraryError,
}


class Fields(NamedTuple):
    """The facts of a failure, as in horo_error_detail."""

    subject: int = 0
    tensor: str = ""
    host: str = ""
    ranks: tuple[int, ...] = ()


_left: list[tuple[int, ...]] = []  # one entry after the first call that failed because a rank had left the job


def ranks_that_left():
    """The ranks that had left the job when a call first failed because of that, as far as they are known; None:
    no call has."""
    return _left[0] if _left else None


def failure(status):
    """The exception for `status`, with the message and detail of the calling thread's last failed
    call. Call it before the thread's next call of the library."""
    message = (fast.horo_last_error() or b"").decode(errors="replace")
    fields = _last_fields()
    if status == _native.SHUT_DOWN and not _left:
        _left.append(fields.ranks if fields is not None else ())
    return made(status, message, fields)


def made(status: int, message: str, fields: Fields | None = None) -> Exception:
    """The exception for a horo_status, with these facts."""
    name = fast.horo_status_name(status).decode()
    error = _ERRORS.get(status, errors.HoroError)(message or name)
    if isinstance(error, errors.HoroError):
        error.status = name
        if fields is not None:
            subjects = _native.SUBJECTS
            known = fields.subject < len(subjects)
            error.subject = subjects[fields.subject] if known else "other"
            error.tensor, error.host, error.ranks = fields.tensor, fields.host, fields.ranks
    return error


def parsed(text: str) -> Exception:
    """The exception for a failure as bindings/error_fields.hpp writes it."""
    status, subject, tensor, host, ranks, message = text.split("\n", 5)
    numbers = tuple(int(rank) for rank in ranks.split(",") if rank)
    fields = Fields(int(subject), _unescaped(tensor), _unescaped(host), numbers)
    return made(int(status), message, fields)


def _unescaped(line):
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], line)


def _last_fields():
    """The fields of the calling thread's last failure; None if they cannot be read."""
    detail = _native.ErrorDetail(size=ctypes.sizeof(_native.ErrorDetail))
    if fast.horo_last_error_detail(detail):
        return None
    tensor = (detail.tensor or b"").decode(errors="replace")
    host = (detail.host or b"").decode(errors="replace")
    return Fields(detail.subject, tensor, host, tuple(detail.ranks[: detail.rank_count]))


def check(status):
    """Raises the exception for `status` unless it is OK."""
    if status:
        raise failure(status)
