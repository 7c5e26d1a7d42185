# SPDX-License-Identifier: Apache-2.0
"""What the frameworks' modules share: errors, this process's position, handles and waits.

A handle is the number of one operation (horo_op), or a negative number for a group. An operation
owns its buffers until it completes, so its tensors stay in PENDING until somebody has waited.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from horo import _native, errors
from horo._native import IN_PROGRESS, NOT_FOUND, fast, slow

if TYPE_CHECKING:
    from collections.abc import Callable

AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)
OP_NAMES = ("Average", "Sum", "Adasum", "Min", "Max", "Product")

# A wait returns to the interpreter this often, so that signals are handled.
SLICE_MS = 100

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
    _native.VERSION_MISMATCH: errors.LibraryError,
}

_submit = fast.horo_submit
_wait = slow.horo_wait


def failure(status, message=None):
    """The exception for `status`, with the calling thread's last message unless one is given."""
    if message is None:
        message = (fast.horo_last_error() or b"").decode(errors="replace")
    name = fast.horo_status_name(status).decode()
    kind = _ERRORS.get(status, errors.HoroError)
    error = kind(message or name)
    if isinstance(error, errors.HoroError):
        error.status = name
    return error


def check(status):
    if status:
        raise failure(status)


# -- Position ----------------------------------------------------------------------------------


joined_by: int | None = None  # the process that has called init()


def absent():
    """The error of a process that is in no job."""
    if joined_by not in (None, os.getpid()):
        return errors.ForkedError(
            "this process was forked from the one that called horo.init(); start it afresh (spawn) "
            "to use horo"
        )
    return errors.NotInitializedError("horo is not initialised; call horo.init() first")


def is_initialized() -> bool:
    """True between init() and shutdown()."""
    return bool(fast.horo_is_initialized())


def _position(name: str, text: str) -> Callable[[], int]:
    function = getattr(fast, "horo_" + name)

    def query() -> int:
        value = function()
        if value < 0:
            raise absent()
        return value

    query.__name__ = query.__qualname__ = name
    query.__doc__ = text
    return query


rank = _position("rank", "Position of this process in the whole job.")
size = _position("size", "Processes in the job.")
local_rank = _position("local_rank", "Position among the processes of this host.")
local_size = _position("local_size", "Processes on this host.")
cross_rank = _position("cross_rank", "Position among the hosts that have this local rank.")
cross_size = _position("cross_size", "Hosts that have this local rank.")


def is_homogeneous() -> bool:
    """True when every host runs the same number of ranks."""
    return size() == local_size() * cross_size()


def counters() -> dict[str, int]:
    """What the runtime did since init(), as a dict: tensors, entries, bytes, fused_bytes, ..."""
    values = _native.Counters(size=ctypes.sizeof(_native.Counters))
    check(fast.horo_get_counters(values))
    return {name: getattr(values, name) for name, _ in values._fields_[1:]}


def start_timeline(file_path: str | os.PathLike[str], mark_cycles: bool = False) -> None:
    """Writes a trace of all operations to `file_path` from now on; rank 0 does, others nothing."""
    check(slow.horo_start_timeline(os.fsencode(file_path), int(bool(mark_cycles))))


def stop_timeline() -> None:
    """Ends the trace; all that was recorded is in its file then."""
    check(slow.horo_stop_timeline())


def resolve_op(average, op):
    """The operation that `op`, or the deprecated `average`, asks for."""
    if average is not None:
        import warnings

        if op is not None:
            raise ValueError("give either op or average, not both; average is deprecated")
        warnings.warn("average= is deprecated; use op=", DeprecationWarning, stacklevel=4)
        return AVERAGE if average else SUM
    if op is None:
        return AVERAGE
    if op not in range(len(OP_NAMES)):
        raise ValueError(f"op {op!r} is not one of {', '.join(OP_NAMES)}")
    return op


# -- Handles -----------------------------------------------------------------------------------

# handle -> (output, what must stay alive, finish or None); finish(handle, item) gives the result.
PENDING: dict[int, tuple] = {}
_groups = iter(range(-1, -(2**62), -1))


def declare_again(record):
    """Declares a record's name, new or forgotten by the runtime since."""
    check(fast.horo_declare(record.description, record.address))
    record.tensor = record.slot.value


def submit(record, source, target):
    """Offers one part by address; the caller then puts what it must keep alive into PENDING."""
    status = _submit(record.tensor, source, target, record.address)
    if status == NOT_FOUND:
        declare_again(record)
        status = _submit(record.tensor, source, target, record.address)
    if status:
        raise failure(status)
    handle = record.handle = record.slot.value
    return handle


class Part(NamedTuple):
    """One submission; addresses."""

    record: Any  # of its name
    source: int
    target: Optional[int] = None
    room: int = 0  # bytes at `target`, where only the peers' parts tell the result's size
    splits: Optional[list] = None


_SUBMISSION_SIZE = ctypes.sizeof(_native.Submission)


def _fill(submission, part):
    submission.size = _SUBMISSION_SIZE
    submission.tensor = part.record.tensor
    submission.source = part.source
    submission.target = part.target
    submission.target_bytes = part.room
    if part.splits is not None:
        count = submission.split_count = len(part.splits)
        submission.splits = (ctypes.c_int64 * count)(*part.splits)


def submit_part(part):
    """As submit, with all that a part may say."""
    record = part.record
    if not part.room and part.splits is None:
        return submit(record, part.source, part.target)
    submission = _native.Submission()
    _fill(submission, part)
    status = fast.horo_submit_with(submission, record.address)
    if status == NOT_FOUND:
        declare_again(record)
        _fill(submission, part)
        status = fast.horo_submit_with(submission, record.address)
    check(status)
    handle = record.handle = record.slot.value
    return handle


def submit_all(parts):
    """Submits all parts and returns their handles; on failure none is submitted."""
    count = len(parts)
    submissions, ops = (_native.Submission * count)(), (ctypes.c_uint64 * count)()
    for submission, part in zip(submissions, parts):
        _fill(submission, part)
    status = fast.horo_submit_all(submissions, count, ctypes.addressof(ops))
    if status == NOT_FOUND:
        for submission, part in zip(submissions, parts):
            declare_again(part.record)
            _fill(submission, part)
        status = fast.horo_submit_all(submissions, count, ctypes.addressof(ops))
    check(status)
    handles = ops[:]
    for part, handle in zip(parts, handles):
        part.record.handle = handle
    return handles


def wait(handle):
    """Status of the completed operation, which is released unless it has a result of its own."""
    status = _wait(handle, SLICE_MS)
    while status == IN_PROGRESS:
        status = _wait(handle, SLICE_MS)
    return status


def wait_all(handles):
    """As wait for each, in one call: the first error. None may have a result of its own."""
    count = len(handles)
    if not count:
        return 0
    ops = (ctypes.c_uint64 * count)(*handles)
    address = ctypes.addressof(ops)
    status = IN_PROGRESS
    while status == IN_PROGRESS:  # nothing is released before all are complete
        status = slow.horo_wait_all(address, count, SLICE_MS)
    return status


def synchronize(handle: int) -> Any:
    """Waits for an operation and gives its result; None for a handle that was waited for."""
    item = PENDING.get(handle)
    if item is None:
        return None
    finish = item[2]
    if finish is not None:
        return finish(handle, item)
    status = _wait(handle, SLICE_MS)
    while status == IN_PROGRESS:
        status = _wait(handle, SLICE_MS)
    PENDING.pop(handle, None)
    if status:
        raise failure(status)
    return item[0]


def poll(handle: int) -> bool:
    """True when synchronize() would return at once."""
    item = PENDING.get(handle)
    if item is None:
        raise ValueError(f"handle {handle} is not in flight; it was synchronised, or never given")
    if handle < 0:
        return all(poll(member) for member in item[1] if member in PENDING)
    return fast.horo_poll(handle) != IN_PROGRESS


def settle(handle):
    """Completes an operation without giving its result away: a later synchronize() has it."""
    output, kept, finish = PENDING[handle]
    status = wait(handle)
    if finish is not None:  # it waits again, for an operation that may be released
        PENDING[handle] = (output, kept, lambda *_: _late(handle, finish, output, kept, status))
        return
    error = failure(status) if status else None
    PENDING[handle] = (output, kept, lambda *_: _give(handle, output, error))


def _late(handle, finish, output, kept, status):
    return finish(handle, (output, kept, finish), status)


def _give(handle, output, error):
    PENDING.pop(handle, None)
    if error is not None:
        raise error
    return output


def group(handles):
    """One handle for several; its result is the list of theirs."""
    handle = next(_groups)
    PENDING[handle] = (None, handles, _finish_group)
    return handle


def _finish_group(handle, item):
    outputs, first_error = [], None
    for member in item[1]:
        if first_error is not None and _left_alone(member, first_error):
            continue
        try:
            outputs.append(synchronize(member))
        except errors.HoroError as error:
            first_error = first_error or error
    PENDING.pop(handle, None)
    if first_error is not None:
        raise first_error
    return outputs


def _left_alone(handle, error):
    """True for what a peer may never submit, because its group has other members. It stays in
    PENDING: its buffers are the runtime's."""
    disagree = isinstance(error, errors.MismatchError) and "about the group" in str(error)
    return disagree and handle in PENDING and not poll(handle)


# -- Results -------------------------------------------------------------------------------------


def result_of(handle, ranks, status=None):
    """The result of an operation that owns it, once complete: (address, bytes, rows from each of
    so many ranks). The caller releases the operation."""
    if status is None:
        status = wait(handle)
    if status:
        error = failure(status)
        fast.horo_release(handle)
        raise error
    data, count = ctypes.c_void_p(), ctypes.c_size_t()
    rows = (ctypes.c_int64 * ranks)()
    address = ctypes.addressof
    check(fast.horo_result(handle, address(data), address(count), address(rows)))
    return data.value, count.value, rows[:]
