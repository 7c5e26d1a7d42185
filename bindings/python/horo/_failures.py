# SPDX-License-Identifier: Apache-2.0
"""Turns a horo_status of the C library into an exception."""

from __future__ import annotations

import ctypes

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


def failure(status):
    """The exception for `status`, with the message and detail of the calling thread's last failed
    call. Call it before the thread's next call of the library."""
    message = (fast.horo_last_error() or b"").decode(errors="replace")
    name = fast.horo_status_name(status).decode()
    kind = _ERRORS.get(status, errors.HoroError)
    error = kind(message or name)
    if isinstance(error, errors.HoroError):
        error.status = name
        _describe(error)
    return error


def _describe(error):
    """Copies the fields of the last failure into the exception."""
    detail = _native.ErrorDetail(size=ctypes.sizeof(_native.ErrorDetail))
    if fast.horo_last_error_detail(detail):
        return
    subjects = _native.SUBJECTS
    error.subject = subjects[detail.subject] if detail.subject < len(subjects) else "other"
    error.tensor = (detail.tensor or b"").decode(errors="replace")
    error.host = (detail.host or b"").decode(errors="replace")
    error.ranks = tuple(detail.ranks[: detail.rank_count])


def check(status):
    """Raises the exception for `status` unless it is OK."""
    if status:
        raise failure(status)
