# SPDX-License-Identifier: Apache-2.0
"""Operations from their submission to their result, for all frameworks.

A handle is the number of one operation (horo_op), or a negative number for a group of operations.
An operation owns its buffers until it completes. PENDING keeps them alive until a caller has
waited for it.

The extension module replaces the functions declare, submit, wait, poll and synchronize where it is there. It does
the same in the usual case, and calls the functions here in all others.
"""

from __future__ import annotations

import collections
import ctypes
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from horo import _extension, _job, _native, errors
from horo._failures import check, failure
from horo._native import DEVICE, DUPLICATE, IN_PROGRESS, NOT_FOUND, NOT_INITIALIZED, fast, slow

# A wait returns to the interpreter after this many milliseconds, so that signals are handled.
SLICE_MS = 100

# handle -> (output, objects to keep alive, finish or None). finish(handle, item) waits for the
# operation and returns its result; without it, the result is `output`.
PENDING: dict[int, tuple] = {}
_abandoned: collections.deque[int] = collections.deque()
# Operations in device memory that nobody waits for any more: handle -> (objects to keep alive, whether
# an error of it is news).
_retired: dict[int, tuple[Any, bool]] = {}
_late_errors: collections.deque[tuple[int, Exception]] = collections.deque()  # with their handles
_groups = iter(range(-1, -(2**62), -1))

_submit = fast.horo_submit
_await = slow.horo_await
_release = fast.horo_release
_fastpath = _extension.module


# -- Submission --------------------------------------------------------------------------------


class Description(NamedTuple):
    """A signature as horo_declare() takes it; see horo_tensor_desc."""

    kind: int
    op: int
    dtype: int
    shape: tuple[int, ...]
    root_rank: int
    prescale: float
    postscale: float
    group: Optional[bytes]
    group_size: int
    wire_dtype: int
    wire_feedback: int
    memory: int


def _declare(record):
    """Declares a record's name with its description and returns the status."""
    number, description = ctypes.c_uint64(), record.description
    shape = description.shape
    fields = description._replace(shape=(ctypes.c_int64 * len(shape))(*shape))._asdict()
    size = ctypes.sizeof(_native.TensorDesc)
    given = _native.TensorDesc(size, record.name, ndim=len(shape), process_set=record.set, **fields)
    status = fast.horo_declare(given, ctypes.addressof(number))
    if not status:
        record.tensor = number.value
    return status


def declare_again(record):
    """Declares a record's name, which is new or which the runtime has evicted."""
    status = _declare(record)
    if status == DUPLICATE and _ends(record):
        status = _declare(record)
    if status == NOT_INITIALIZED and _job.is_planned():
        _job.need()
        status = _declare(record)
    check(status)


def submit_again(record, source, target):
    """Submits one tensor by the addresses of its buffers and returns the handle. The caller then
    puts the objects that own the buffers into PENDING. A name that the runtime has evicted is
    declared again."""
    status = _submit(record.tensor, source, target, record.address)
    if status == NOT_FOUND:
        declare_again(record)
        status = _submit(record.tensor, source, target, record.address)
    if status:
        raise failure(status)
    handle = record.handle = record.slot.value
    return handle


submit = submit_again


def submit_at_again(record, source, target, device, stream):
    """Like submit_again, for buffers on a device that are ready when the work is done that is now on
    the stream."""
    part = Part(record, source, target, device=device, stream=stream)
    return _submit_with(part)


submit_at = submit_at_again


def _ends(record):
    """Waits until the device has done the last operation of a name, which a stream waits for
    already. False: there is none."""
    if record.handle not in _retired:
        return False
    wait(record.handle)
    _end_retired(record.handle)
    return True


def _may_repeat(record, status):
    """Whether a refused submission can be made again: the name was evicted, or the device has just
    done the last operation of that name."""
    if status == NOT_FOUND:
        declare_again(record)
        return True
    return status == DUPLICATE and _ends(record)


class Part(NamedTuple):
    """One submission. `source` and `target` are addresses."""

    record: Any  # of its name
    source: int
    target: Optional[int] = None
    room: int = 0  # bytes at `target`, for results whose size depends on the other ranks
    splits: Optional[list] = None
    device: int = -1  # whose memory the buffers are; -1: the host's
    stream: int = 0  # of that device


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
    if part.device >= 0:
        submission.memory, submission.device, submission.stream = DEVICE, part.device, part.stream


def submit_part(part):
    """Submits one part and returns its handle, like submit()."""
    if part.room or part.splits is not None:
        return _submit_with(part)
    if part.device >= 0:
        return submit_at(part.record, part.source, part.target, part.device, part.stream)
    return submit(part.record, part.source, part.target)


def _submit_with(part):
    record, submission = part.record, _native.Submission()
    _fill(submission, part)
    status = fast.horo_submit_with(submission, record.address)
    while status and _may_repeat(record, status):
        _fill(submission, part)
        status = fast.horo_submit_with(submission, record.address)
    check(status)
    handle = record.handle = record.slot.value
    return handle


def _submit_parts(parts, ops):
    """Submits all parts or none and returns the status."""
    if _fastpath is not None:
        status = _fastpath.submit_parts(parts, ctypes.addressof(ops))
        if status is not None:
            return status
    submissions = (_native.Submission * len(parts))()
    for submission, part in zip(submissions, parts):
        _fill(submission, part)
    return fast.horo_submit_all(submissions, len(parts), ctypes.addressof(ops))


def submit_all(parts, ops=None):
    """Submits a list of parts and returns their handles. When one fails, none is submitted. `ops`,
    an array of zeros, receives the handles too; a caller that is interrupted finds them there."""
    if ops is None:
        ops = (ctypes.c_uint64 * len(parts))()
    status = _submit_parts(parts, ops)
    if status == NOT_FOUND:
        for part in parts:
            declare_again(part.record)
        status = _submit_parts(parts, ops)
    if status == DUPLICATE and sum(_ends(part.record) for part in parts):
        status = _submit_parts(parts, ops)
    check(status)
    handles = ops[:]
    for part, handle in zip(parts, handles):
        part.record.handle = handle
    return handles


# -- Waiting -----------------------------------------------------------------------------------

# A signal handler may raise between the end of a wait and the use of its result. A wait therefore
# releases nothing: until take(), an operation can be waited for again.


def wait(handle):
    """Waits until the operation completes and returns its status. take() releases it afterwards."""
    status = _await(handle, SLICE_MS)
    while status == IN_PROGRESS:
        status = _await(handle, SLICE_MS)
    return status


def wait_all(operations):
    """Waits for an array of handles in one call. Returns the first error status, or OK."""
    count, address = len(operations), ctypes.addressof(operations)
    if _fastpath is not None:
        return _fastpath.wait_all(address, count)
    status = IN_PROGRESS if count else 0
    while status == IN_PROGRESS:
        status = slow.horo_await_all(address, count, SLICE_MS)
    return status


def wait_stream(handle, stream):
    """Lets a stream wait for an operation in device memory, and returns its status."""
    return wait_stream_all((ctypes.c_uint64 * 1)(handle), stream)


def wait_stream_all(operations, stream):
    """wait_stream() for an array of handles; the first error status, or OK."""
    count, address = len(operations), ctypes.addressof(operations)
    if _fastpath is not None:
        return _fastpath.wait_stream(address, count, stream)
    status = IN_PROGRESS if count else 0
    while status == IN_PROGRESS:
        status = slow.horo_wait_stream(address, count, stream, SLICE_MS)
    return status


def waiting_threads():
    """The identifiers of the threads that wait for an operation."""
    if _fastpath is not None:
        return _fastpath.waiting_threads()
    frames = sys._current_frames()
    return [ident for ident, frame in frames.items() if _waits(frame)]


def _waits(frame):
    codes = (wait.__code__, wait_all.__code__, wait_stream_all.__code__, synchronize.__code__)
    return frame.f_code in codes


def take(handle):
    """Releases a completed operation whose result has been stored."""
    PENDING.pop(handle, None)
    _release(handle)


def take_all(operations):
    """Releases an array of completed operations that are not in PENDING and that own no result."""
    fast.horo_wait_all(ctypes.addressof(operations), len(operations), 0)


def synchronize(handle: int) -> Any:
    """Waits for an operation and returns its result; None when the handle was waited for before."""
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
        raise_failure(handle, status)
    PENDING.pop(handle, None)
    _release(handle)
    return item[0]


def raise_failure(handle, status):
    """Releases a failed operation and raises its error, which is the thread's last one."""
    error = failure(status)
    drop(handle, PENDING.get(handle))
    raise error


def drop(handle, kept=None):
    """Lets go of an operation whose error is known. `kept` stays alive while a device may be at work
    with its buffers."""
    PENDING.pop(handle, None)
    if _release(handle) == IN_PROGRESS:
        _retired[handle] = kept, False


def retire(handle, kept=None):
    """Lets go of an operation in device memory whose result a stream waits for. `kept` stays alive
    until it is complete."""
    PENDING.pop(handle, None)
    _retired[handle] = kept, True
    sweep_retired()


def late_error(handles):
    """An error that the device has met in an operation after its wait had ended, or None. Each is
    returned once, at the end of a wait: that of the operation itself, if the error was known by
    then, or the next one. `handles`: the operations of the wait that ends."""
    try:
        handle, error = _late_errors.popleft()
    except IndexError:  # There is none, or another thread has returned it.
        return None
    if handle not in handles:
        error.args = (f"the result of an operation before this one is not valid: {error}",)
    return error


def sweep_retired():
    """Releases the retired operations that are complete, the oldest first. late_error() returns an
    error that the device has met since their waits ended."""
    while _retired:
        try:
            handle = next(iter(_retired))
        except (RuntimeError, StopIteration):  # another thread sweeps
            return
        if not _end_retired(handle):
            return


def _end_retired(handle):
    """Releases a retired operation. False: it is not complete."""
    status = fast.horo_poll(handle)
    if status == IN_PROGRESS:
        return False
    error = failure(status) if status and status != NOT_FOUND else None
    _release(handle)
    _, is_news = _retired.pop(handle, (None, False))
    if error is not None and is_news:
        _late_errors.append((handle, error))
    return True


def poll(handle: int) -> bool:
    """True when synchronize() would return at once."""
    item = PENDING.get(handle)
    if item is None:
        raise ValueError(f"handle {handle} is not in flight; it was synchronised, or never given")
    if handle < 0:
        return all(poll(member) for member in item[1] if member in PENDING)
    return fast.horo_poll(handle) != IN_PROGRESS


poll_again = poll

if _fastpath is not None and not TYPE_CHECKING:
    _extension.connect(globals())
    submit, wait, synchronize = _fastpath.submit, _fastpath.wait, _fastpath.synchronize
    submit_at, poll, _declare = _fastpath.submit_at, _fastpath.poll, _fastpath.declare


def result_of(handle, ranks, status=None, place=None):
    """Waits for an operation that owns its result; `place`: lets the current stream there wait for
    it. Returns (address, bytes, rows received from each of `ranks` ranks). The caller then calls
    take(), or leave() of the place; a failed operation is released here."""
    if status is None:
        status = wait(handle) if place is None else place.wait(handle)
    elif not status and place is not None:
        # Settled before: the current stream still has to be known as a reader of the result.
        status = place.wait(handle)
    if status:
        raise_failure(handle, status)
    data, count = ctypes.c_void_p(), ctypes.c_size_t()
    rows = (ctypes.c_int64 * ranks)()
    address = ctypes.addressof
    check(fast.horo_result(handle, address(data), address(count), address(rows)))
    return data.value, count.value, rows[:]


# -- Operations that are completed early, or that nobody waits for -------------------------------


def settle(handle):
    """Waits for an operation and keeps its result for a later synchronize()."""
    output, kept, finish = PENDING[handle]
    status = wait(handle)
    if finish is not None:
        # It waits again, which takes no time and has the operation's own error.
        PENDING[handle] = (output, kept, lambda *_: finish(handle, (output, kept, finish)))
        return
    error = failure(status) if status else None
    PENDING[handle] = (output, kept, lambda *_: _give(handle, output, error))
    _release(handle)


def _give(handle, output, error):
    PENDING.pop(handle, None)
    if error is not None:
        raise error
    return output


def abandon(handle, buffers):
    """Marks an operation that nobody will wait for. Its buffers stay alive until it has completed
    and sweep() is called. A finalizer may call this."""
    PENDING[handle] = (None, buffers, None)
    _abandoned.append(handle)


def sweep():
    """Frees the buffers of abandoned operations that have completed."""
    sweep_retired()
    for _ in range(len(_abandoned)):
        handle = _abandoned.popleft()
        if fast.horo_poll(handle) == IN_PROGRESS:
            _abandoned.append(handle)
        else:
            take(handle)


def forget(streams=()):
    """Forgets all operations after the runtime has shut down. A busy device may still have work for
    some of them: `streams` come behind it, and then use the buffers again."""
    for handle in (*PENDING, *_retired):
        for stream in streams if handle > 0 else ():
            wait_stream(handle, stream)
    PENDING.clear()
    _abandoned.clear()
    _retired.clear()
    _late_errors.clear()


# -- Groups --------------------------------------------------------------------------------------


def group(handles):
    """One handle for several operations. Its result is the list of their results."""
    handle = next(_groups)
    PENDING[handle] = ([], handles, _finish_group)
    return handle


def _finish_group(handle, item):
    results, handles, _ = item  # an interruption keeps the results that are already there
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
    """The result of one member, or the error that synchronize() raises for it."""
    if first_error is not None and _may_never_complete(member, first_error):
        return None
    try:
        return synchronize(member)
    except errors.HoroError as error:
        return error


def _may_never_complete(handle, error):
    """True for a member that the peers may never submit, because their group has other members. It
    stays in PENDING: the runtime still owns its buffers."""
    disagree = isinstance(error, errors.MismatchError) and error.subject == "group"
    return disagree and handle in PENDING and not poll(handle)
