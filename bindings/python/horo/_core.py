# SPDX-License-Identifier: Apache-2.0
"""What the frameworks' modules share: the life of the job, declared names, handles and waits.

A handle is the number of one operation (horo_op), or a negative number for a group. An operation
owns its buffers until it completes, so its tensors stay in PENDING until somebody has waited.
"""

import atexit
import ctypes
from typing import NamedTuple, Optional

from horo import _native, errors
from horo._native import IN_PROGRESS, fast, slow

AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)
OP_NAMES = ("Average", "Sum", "Adasum", "Min", "Max", "Product")
KIND_NAMES = ("allreduce", "allgather", "broadcast", "barrier", "reducescatter", "alltoall")

# A wait returns to the interpreter this often, so that signals are handled.
SLICE_MS = 100
# Names of unnamed tensors repeat after so many calls; no table grows with the steps.
UNNAMED = 1024

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


# -- Life --------------------------------------------------------------------------------------


def init():
    """Joins the job that `horo run` describes, or a job of one rank. A second call does nothing."""
    check(slow.horo_init())
    atexit.unregister(shutdown)
    atexit.register(shutdown)


def shutdown():
    """Leaves the job; operations that not all ranks have submitted end with ShutDownError."""
    status = slow.horo_shutdown()
    PENDING.clear()
    for records in RECORDS:
        records.clear()
    for pool in _pools:
        pool.reset()
    check(status)


def is_initialized():
    """True between init() and shutdown()."""
    return bool(fast.horo_is_initialized())


def _position(name, text):
    function = getattr(fast, "horo_" + name)

    def query():
        value = function()
        if value < 0:
            raise errors.NotInitializedError("horo is not initialised; call horo.init() first")
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


def is_homogeneous():
    """True when every host runs the same number of ranks."""
    return size() == local_size() * cross_size()


def counters():
    """What the runtime did since init(), as a dict: tensors, entries, bytes, fused_bytes, ..."""
    values = _native.Counters(size=ctypes.sizeof(_native.Counters))
    check(fast.horo_get_counters(values))
    return {name: getattr(values, name) for name, _ in values._fields_[1:]}


# -- Names -------------------------------------------------------------------------------------


class Record:
    """One declared name: its number in the runtime and the signature it was declared with."""

    __slots__ = ("name", "tensor", "slot", "address", "signature", "handle", "rows")

    def __init__(self, name):
        self.name = name.encode()
        self.tensor = 0
        self.slot = ctypes.c_uint64()  # receives horo_op; its own, since threads may submit
        self.address = ctypes.addressof(self.slot)
        self.signature = None
        self.handle = 0
        self.rows = None  # of the last result, where only the peers' parts tell


class _Pool:
    """Records of unnamed tensors, used in turn: the same on all ranks, which count calls alike."""

    def __init__(self, kind):
        self._prefix = KIND_NAMES[kind] + ".noname."
        self.reset()

    def reset(self):
        self._records = [None] * UNNAMED
        self._next = 0

    def take(self):
        index = self._next
        self._next = (index + 1) % UNNAMED
        record = self._records[index]
        if record is None:
            record = self._records[index] = Record(self._prefix + str(index))
        elif record.handle in PENDING:
            settle(record.handle)
        return record


RECORDS = tuple({} for _ in KIND_NAMES)  # by kind: the user's name -> Record
_pools = [_Pool(kind) for kind in range(len(KIND_NAMES))]
unnamed = tuple(pool.take for pool in _pools)  # by kind


def record_of(kind, name):
    """The record of a user's name, or the next of the unnamed ones."""
    if name is None:
        return unnamed[kind]()
    record = RECORDS[kind].get(name)
    if record is None:
        record = RECORDS[kind][name] = Record(f"{KIND_NAMES[kind]}.{name}")
    return record


def declare(record, kind, dtype, shape, op=SUM, root=0, prescale=1.0, postscale=1.0):
    """Tells the runtime the signature of a name. `dtype` is a name such as "float32"."""
    code = _native.DTYPES.get(dtype)
    if code is None:
        known = ", ".join(_native.DTYPES)
        raise ValueError(f"{record.name.decode()}: dtype {dtype} is not one of {known}")
    description = _native.TensorDesc(
        size=ctypes.sizeof(_native.TensorDesc),
        name=record.name,
        kind=kind,
        op=op,
        dtype=code,
        ndim=len(shape),
        shape=(ctypes.c_int64 * len(shape))(*shape),
        root_rank=root,
        prescale=prescale,
        postscale=postscale,
    )
    record.signature = None
    check(fast.horo_declare(description, record.address))
    record.tensor = record.slot.value


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
PENDING = {}
_groups = iter(range(-1, -(2**62), -1))


def submit(record, source, target):
    """Offers one part by address; the caller then puts what it must keep alive into PENDING."""
    status = _submit(record.tensor, source, target, record.address)
    if status:
        raise failure(status)
    handle = record.handle = record.slot.value
    return handle


class Part(NamedTuple):
    """One submission; addresses."""

    record: Record
    source: int
    target: Optional[int] = None
    room: int = 0  # bytes at `target`, where only the peers' parts tell the result's size
    splits: Optional[list] = None

    def plain(self):
        return not self.room and self.splits is None


def submit_part(part):
    """As submit, with all that a part may say."""
    record, splits = part.record, part.splits
    if part.plain():
        return submit(record, part.source, part.target)
    count = len(splits) if splits is not None else 0
    submission = _native.Submission(
        size=ctypes.sizeof(_native.Submission),
        tensor=record.tensor,
        source=part.source,
        target=part.target,
        target_bytes=part.room,
        splits=(ctypes.c_int64 * count)(*splits) if count else None,
        split_count=count,
    )
    check(fast.horo_submit_with(submission, record.address))
    handle = record.handle = record.slot.value
    return handle


def submit_group(parts):
    """Submits all parts and returns their handles. On failure those that were accepted complete
    first, so that no buffer is in use when the exception arrives."""
    if all(part.plain() for part in parts):
        return submit_many(*zip(*[part[:3] for part in parts]))
    handles = []
    try:
        for part in parts:
            handles.append(submit_part(part))
    except Exception:
        for handle in handles:
            wait(handle)
            fast.horo_release(handle)
        raise
    return handles


def submit_many(records, sources, targets):
    """As submit for each, in one call. Returns the handles; on failure those that were accepted
    complete first, so that no buffer is in use when the exception arrives."""
    count = len(records)
    tensors = (ctypes.c_uint64 * count)(*[record.tensor for record in records])
    ins = (ctypes.c_void_p * count)(*sources)
    outs = (ctypes.c_void_p * count)(*targets)
    ops = (ctypes.c_uint64 * count)()
    done = ctypes.c_size_t()
    address = ctypes.addressof
    status = fast.horo_submit_many(
        address(tensors), address(ins), address(outs), count, address(ops), address(done)
    )
    handles = ops[: done.value]
    for record, handle in zip(records, handles):
        record.handle = handle
    if status:
        error = failure(status)
        for handle in handles:
            wait(handle)
            fast.horo_release(handle)  # not found, unless it has a result of its own
        raise error
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


def synchronize(handle):
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
    del PENDING[handle]
    if status:
        raise failure(status)
    return item[0]


def poll(handle):
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
    del PENDING[handle]
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
        try:
            outputs.append(synchronize(member))
        except errors.HoroError as error:
            first_error = first_error or error
    del PENDING[handle]
    if first_error is not None:
        raise first_error
    return outputs


# -- Results and barrier -------------------------------------------------------------------------


def result_of(handle, status=None):
    """The result of an allgather or alltoall once complete: (address, bytes, rows from each rank).
    The caller releases the operation."""
    if status is None:
        status = wait(handle)
    if status:
        error = failure(status)
        fast.horo_release(handle)
        raise error
    data, count = ctypes.c_void_p(), ctypes.c_size_t()
    rows = (ctypes.c_int64 * size())()
    address = ctypes.addressof
    check(fast.horo_result(handle, address(data), address(count), address(rows)))
    return data.value, count.value, rows[:]


def barrier():
    """Blocks until all ranks have called it."""
    record = unnamed[_native.BARRIER]()
    if record.signature is None:
        declare(record, _native.BARRIER, "uint8", ())
        record.signature = ()
    handle = submit(record, None, None)
    PENDING[handle] = (None, None, None)
    synchronize(handle)
