# SPDX-License-Identifier: Apache-2.0
"""What the frameworks' modules share: errors, this process's position, handles and waits.

A handle is the number of one operation (horo_op), or a negative number for a group. An operation
owns its buffers until it completes, so its tensors stay in PENDING until somebody has waited.
"""

from __future__ import annotations

import collections
import ctypes
import operator
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
_await = slow.horo_await
_release = fast.horo_release


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
    """True when every host runs the same number of ranks; the same on all ranks."""
    answer = fast.horo_is_homogeneous()
    if answer < 0:
        raise absent()
    return bool(answer)


def counters() -> dict[str, int]:
    """What the runtime did since init(), as a dict: tensors, entries, bytes, fused_bytes, ..."""
    values = _native.Counters(size=ctypes.sizeof(_native.Counters))
    check(fast.horo_get_counters(values))
    return {name: getattr(values, name) for name, _ in values._fields_[1:]}


def start_timeline(file_path: str | os.PathLike[str], mark_cycles: bool = False) -> None:
    """Writes a trace of all operations to `file_path` from now on; rank 0 does, others nothing."""
    path = os.fsencode(file_path)
    if b"\0" in path:
        raise ValueError(f"file_path {file_path!r} has a null character")
    check(slow.horo_start_timeline(path, int(bool(mark_cycles))))


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


def whole_number(given, what, bits=32):
    """`given` as an int that the runtime's, of so many bits, has room for. Fails: ValueError."""
    try:
        number = operator.index(given)
    except TypeError:
        raise ValueError(f"{what} is {given!r}, which is no whole number") from None
    if number.bit_length() >= bits:
        raise ValueError(f"{what} is {number}, which is out of range")
    return number


# -- Handles -----------------------------------------------------------------------------------

# handle -> (output, what must stay alive, finish or None); finish(handle, item) gives the result.
PENDING: dict[int, tuple] = {}
_abandoned: collections.deque[int] = collections.deque()
_groups = iter(range(-1, -(2**62), -1))


def declare_again(record):
    """Declares a record's name, new or forgotten by the runtime since."""
    number = ctypes.c_uint64()
    check(fast.horo_declare(record.description, ctypes.addressof(number)))
    record.tensor = number.value


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


def submit_all(parts, ops=None):
    """Submits all parts and returns their handles; on failure none is submitted. `ops`: an array of
    zeros that gets them."""
    count = len(parts)
    submissions = (_native.Submission * count)()
    if ops is None:
        ops = (ctypes.c_uint64 * count)()
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


# A wait releases nothing, since a signal's handler may raise between its end and the use of what it
# returns: until its result is taken an operation can be waited for again.


def wait(handle):
    """Status of the completed operation, which is to be taken."""
    status = _await(handle, SLICE_MS)
    while status == IN_PROGRESS:
        status = _await(handle, SLICE_MS)
    return status


def wait_all(operations):
    """As wait for each, in one call: the first error. `operations` is an array of handles."""
    count, address = len(operations), ctypes.addressof(operations)
    status = IN_PROGRESS if count else 0
    while status == IN_PROGRESS:
        status = slow.horo_await_all(address, count, SLICE_MS)
    return status


def take(handle):
    """Releases a completed operation whose result is where it belongs."""
    PENDING.pop(handle, None)
    _release(handle)


def take_all(operations):
    """As take for each, of an array of handles that are not pending. None may have a result of its
    own."""
    fast.horo_wait_all(ctypes.addressof(operations), len(operations), 0)


def synchronize(handle: int) -> Any:
    """Waits for an operation and gives its result; None for a handle that was waited for."""
    item = PENDING.get(handle)
    if item is None:
        return None
    finish = item[2]
    if finish is not None:
        return finish(handle, item)
    status = _await(handle, SLICE_MS)
    while status == IN_PROGRESS:
        status = _await(handle, SLICE_MS)
    if status:
        error = failure(status)
        take(handle)
        raise error
    PENDING.pop(handle, None)
    _release(handle)
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
    if finish is not None:
        PENDING[handle] = (output, kept, lambda *_: _late(handle, finish, output, kept, status))
        return
    error = failure(status) if status else None
    PENDING[handle] = (output, kept, lambda *_: _give(handle, output, error))
    _release(handle)


def _late(handle, finish, output, kept, status):
    return finish(handle, (output, kept, finish), status)


def _give(handle, output, error):
    PENDING.pop(handle, None)
    if error is not None:
        raise error
    return output


def abandon(handle, buffers):
    """Nobody will wait for the operation. Its buffers stay until it has completed, and until the
    next sweep(). May be called at any time, from a finalizer too."""
    PENDING[handle] = (None, buffers, None)
    _abandoned.append(handle)


def sweep():
    """Lets go of what abandoned operations that have completed kept alive."""
    for _ in range(len(_abandoned)):
        handle = _abandoned.popleft()
        if fast.horo_poll(handle) == IN_PROGRESS:
            _abandoned.append(handle)
        else:
            take(handle)


def forget():
    """Forgets all operations, of a runtime that is gone."""
    PENDING.clear()
    _abandoned.clear()


def group(handles):
    """One handle for several; its result is the list of theirs."""
    handle = next(_groups)
    PENDING[handle] = ([], handles, _finish_group)
    return handle


def _finish_group(handle, item):
    results, handles, _ = item  # those of the members before an interruption stay
    first_error = None
    for index, member in enumerate(handles):
        if index == len(results):
            results.append(_result_in_group(member, first_error))
        if isinstance(results[index], errors.HoroError):
            first_error = first_error or results[index]
    PENDING.pop(handle, None)
    if first_error is not None:
        raise first_error
    return results


def _result_in_group(member, first_error):
    """What synchronize() gives, or the error that it raises."""
    if first_error is not None and _left_alone(member, first_error):
        return None
    try:
        return synchronize(member)
    except errors.HoroError as error:
        return error


def _left_alone(handle, error):
    """True for what a peer may never submit, because its group has other members. It stays in
    PENDING: its buffers are the runtime's."""
    disagree = isinstance(error, errors.MismatchError) and "about the group" in str(error)
    return disagree and handle in PENDING and not poll(handle)


# -- Results -------------------------------------------------------------------------------------


def result_of(handle, ranks, status=None):
    """The result of an operation that owns it, once complete: (address, bytes, rows from each of
    so many ranks). The caller takes the operation; one that failed is."""
    if status is None:
        status = wait(handle)
    if status:
        error = failure(status)
        take(handle)
        raise error
    data, count = ctypes.c_void_p(), ctypes.c_size_t()
    rows = (ctypes.c_int64 * ranks)()
    address = ctypes.addressof
    check(fast.horo_result(handle, address(data), address(count), address(rows)))
    return data.value, count.value, rows[:]
