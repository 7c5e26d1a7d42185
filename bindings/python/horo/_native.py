# SPDX-License-Identifier: Apache-2.0
"""Finds libhoro, checks its ABI and describes its functions to ctypes.

There are two views of the library. `fast` keeps the interpreter lock, for calls that never block.
`slow` releases it, for calls that wait.
"""

import ctypes
import os
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)

from horo.errors import LibraryError

ABI_VERSION = 1
PACKAGE = os.path.dirname(os.path.abspath(__file__))  # symbolic links of the build tree stay
LIBRARY = "libhoro.so"

# horo_status
OK = 0
INVALID_ARGUMENT = 1
NOT_FOUND = 2
UNAVAILABLE = 3
TIMED_OUT = 4
IO = 5
OUT_OF_MEMORY = 6
RESOURCE_EXHAUSTED = 7
MISMATCH = 8
DUPLICATE = 9
PEER_LOST = 10
SHUT_DOWN = 11
NOT_INITIALIZED = 12
FORKED = 13
UNSUPPORTED = 14
PROTOCOL = 15
PERMISSION_DENIED = 16
VERSION_MISMATCH = 17
IN_PROGRESS = 18
CANCELLED = 19
REMOVED = 20

# horo_kind
ALLREDUCE = 0
ALLGATHER = 1
BROADCAST = 2
BARRIER = 3
REDUCESCATTER = 4
ALLTOALL = 5
JOIN = 6

# horo_subject, by number
SUBJECTS = (
    "",
    "operation",
    "dtype",
    "shape",
    "root_rank",
    "reduce_op",
    "prescale",
    "postscale",
    "group",
    "joined",
    "wire_dtype",
    "memory",
)

# horo_memory
HOST = 0
DEVICE = 1

# horo_dtype, by the name that numpy, ml_dtypes and torch share
DTYPES = {
    "uint8": 0,
    "int8": 1,
    "uint16": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bool": 9,
    "bfloat16": 10,
}


class TensorDesc(ctypes.Structure):
    """horo_tensor_desc"""

    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("kind", c_int),
        ("op", c_int),
        ("dtype", c_int),
        ("ndim", c_int),
        ("shape", POINTER(c_int64)),
        ("root_rank", c_int),
        ("prescale", c_double),
        ("postscale", c_double),
        ("process_set", c_uint32),
        ("group", c_char_p),
        ("group_size", c_uint32),
        ("unused", c_uint32),
        ("wire_dtype", c_int),
        ("wire_feedback", c_int),
        ("memory", c_int),
        ("unused2", c_uint32),
    ]


class Submission(ctypes.Structure):
    """horo_submission"""

    _fields_ = [
        ("size", c_size_t),
        ("tensor", c_uint64),
        ("source", c_void_p),
        ("target", c_void_p),
        ("target_bytes", c_size_t),
        ("splits", POINTER(c_int64)),
        ("split_count", c_size_t),
        ("memory", c_int),
        ("device", c_int),
        ("stream", c_void_p),
    ]


class Counters(ctypes.Structure):
    """horo_counters"""

    _fields_ = [("size", c_size_t)] + [
        (name, c_uint64)
        for name in (
            "tensors",
            "entries",
            "bytes",
            "fused_bytes",
            "direct_bytes",
            "sleeps",
            "wakes",
            "rounded_bytes",
        )
    ]


class ErrorDetail(ctypes.Structure):
    """horo_error_detail"""

    _fields_ = [
        ("size", c_size_t),
        ("status", c_int),
        ("subject", c_int),
        ("tensor", c_char_p),
        ("host", c_char_p),
        ("ranks", POINTER(c_int)),
        ("rank_count", c_size_t),
    ]


def candidates():
    """Paths where libhoro may be, best first. The last one is the loader's own search."""
    named = os.environ.get("HORO_LIBRARY")
    if named:
        return [named]
    up = os.path.dirname
    tree = up(up(PACKAGE))
    return [
        os.path.join(PACKAGE, LIBRARY),  # a wheel
        os.path.join(tree, "lib", LIBRARY),  # build tree: <build>/python/horo
        os.path.join(up(tree), LIBRARY),  # installed: <libdir>/horo/python/horo
        LIBRARY,
    ]


def find():
    """Path of the first candidate that exists, or the last one, which the loader searches."""
    for path in candidates():
        if os.sep not in path or os.path.exists(path):
            return path
    return candidates()[-1]


def _open(path, loader):
    try:
        return loader(path)
    except OSError as error:
        if os.path.exists(path):
            reason = f"cannot load libhoro: {error}"
        else:
            reason = "libhoro.so not found; tried " + ", ".join(candidates())
        raise LibraryError(f"{reason}; build it, or set HORO_LIBRARY to its path") from None


def _check_version(library, path):
    try:
        version_function = library.horo_abi_version
        version_function.restype = c_int
        name_function = library.horo_version
        name_function.restype = c_char_p
    except AttributeError:
        raise LibraryError(f"{path} is not libhoro: it has no horo_abi_version") from None
    found = version_function()
    if found != ABI_VERSION:
        release = (name_function() or b"?").decode()
        raise LibraryError(
            f"libhoro {release} at {path} has ABI {found}, the Python package at {PACKAGE} needs "
            f"ABI {ABI_VERSION}; install both from one release, or set HORO_LIBRARY"
        )


_FAST = {
    "horo_is_initialized": (c_int, []),
    "horo_rank": (c_int, []),
    "horo_size": (c_int, []),
    "horo_local_rank": (c_int, []),
    "horo_local_size": (c_int, []),
    "horo_cross_rank": (c_int, []),
    "horo_cross_size": (c_int, []),
    "horo_is_homogeneous": (c_int, []),
    "horo_overlaps": (c_int, []),
    "horo_version": (c_char_p, []),
    "horo_last_error": (c_char_p, []),
    "horo_last_error_detail": (c_int, [POINTER(ErrorDetail)]),
    "horo_status_name": (c_char_p, [c_int]),
    "horo_declare": (c_int, [POINTER(TensorDesc), c_void_p]),
    # Addresses are passed as plain integers, so that a call makes no object.
    "horo_submit": (c_int, [c_uint64, c_void_p, c_void_p, c_void_p]),
    "horo_submit_with": (c_int, [POINTER(Submission), c_void_p]),
    "horo_submit_all": (c_int, [POINTER(Submission), c_size_t, c_void_p]),
    "horo_poll": (c_int, [c_uint64]),
    "horo_result": (c_int, [c_uint64, c_void_p, c_void_p, c_void_p]),
    "horo_release": (c_int, [c_uint64]),
    "horo_wait_all": (c_int, [c_void_p, c_size_t, c_int64]),  # here only for completed operations
    "horo_alloc": (c_int, [c_size_t, c_void_p]),
    "horo_free": (c_int, [c_void_p]),
    "horo_get_counters": (c_int, [POINTER(Counters)]),
    "horo_process_set_rank": (c_int, [c_uint32]),
    "horo_process_set_size": (c_int, [c_uint32]),
    "horo_process_set_ranks": (c_int, [c_uint32, c_void_p]),
    "horo_process_sets": (c_size_t, [c_void_p, c_size_t]),
    "horo_process_set_backend": (c_char_p, [c_uint32]),
    "horo_job_key": (c_int, [c_char_p, c_void_p]),
    "horo_generation": (c_int64, []),
    "horo_survivors": (c_int, []),
    "horo_is_elastic": (c_int, []),
    "horo_pending_change": (c_int, [POINTER(c_uint64), POINTER(c_uint32)]),
}
_SLOW = {
    "horo_init": (c_int, []),
    "horo_init_alone": (c_int, []),
    "horo_shutdown": (c_int, []),
    "horo_device_support": (c_int, [c_char_p]),  # a child may start the driver
    "horo_device_library": (c_char_p, [c_char_p]),
    "horo_digest": (c_int, [c_void_p, c_size_t, c_void_p]),
    "horo_resumed": (c_int, [c_double, c_int64]),
    "horo_add_process_set": (c_int, [c_void_p, c_size_t, POINTER(c_uint32)]),
    "horo_remove_process_set": (c_int, [c_uint32]),
    "horo_start_timeline": (c_int, [c_char_p, c_int]),
    "horo_stop_timeline": (c_int, []),
    "horo_await": (c_int, [c_uint64, c_int64]),
    "horo_await_all": (c_int, [c_void_p, c_size_t, c_int64]),
    "horo_wait_stream": (c_int, [c_void_p, c_size_t, c_void_p, c_int64]),
}


def _describe(library, table):
    for name, (result, arguments) in table.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise LibraryError(
                f"{library._name} is older than the Python package at {PACKAGE}: it has no {name}; "
                "install both from one release, or set HORO_LIBRARY"
            ) from None
        function.restype = result
        function.argtypes = arguments


def _load():
    path = find()
    slow_view = _open(path, ctypes.CDLL)
    _check_version(slow_view, path)
    fast_view = ctypes.PyDLL(path)
    _describe(fast_view, _FAST)
    _describe(slow_view, _SLOW)
    return path, fast_view, slow_view


path, fast, slow = _load()
version = fast.horo_version().decode()
