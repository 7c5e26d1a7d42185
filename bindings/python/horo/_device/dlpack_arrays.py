# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of CUDA devices and of AMD's, of any library that exports DLPack, for horo.numpy.

Such a library has streams of its own, of which Horo knows nothing. So an array is taken when it is ready
on the device's legacy default stream, which the library is asked for (stream=1 for CUDA, 0 for ROCm), and
a wait for an operation waits until its result is there for every stream.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

from horo import _handles
from horo._device import dlpack, libraries
from horo._device.places import Kind, Place
from horo._failures import failure
from horo._native import slow

# By DLPack's type of device: the name of its legacy default stream, and of its library.
_LEGACY_STREAM = {dlpack.CUDA: 1, dlpack.ROCM: 0}
_LIBRARY = {dlpack.CUDA: "cuda", dlpack.ROCM: "rocm"}
_ANY_DIRECTION = 4  # hipMemcpyDefault


class _WaitedPlace(Place):
    """The program waits, until the device has done the operation."""

    __slots__ = ()

    def wait(self, handle: int) -> int:
        status = _handles.wait(handle)
        if status:  # a busy device may still have work for it, which comes before the library's
            status = _handles.wait_stream(handle, self.submitted)
        return status

    def leave(self, handle: int, *memory: Any) -> None:
        del memory
        _handles.take(handle)


_KINDS = {kind: Kind("cuda", lambda index: 0, None, None, library=name) for kind, name in _LIBRARY.items()}


@functools.lru_cache(maxsize=None)
def _place(kind, index):
    """Fails: StartError (Horo does not reach the device; says why)."""
    status = slow.horo_device_support(_LIBRARY[kind].encode())
    if status:
        raise failure(status)
    return _WaitedPlace(_KINDS[kind], index, 0)


def is_on_device(given: Any) -> bool:
    """Whether an object exports an array in the memory of a device that the host cannot read."""
    device = getattr(given, "__dlpack_device__", None)
    if device is None:
        return False
    return int(device()[0]) in _LIBRARY


class DevicePart:
    """An exported array, as the runtime takes it. It keeps the array's memory alive."""

    __slots__ = ("given", "place", "shape", "dtype", "seen")

    def __init__(self, given: Any) -> None:
        """Fails: ValueError (a dtype that Horo has not), StartError (the device is not reached)."""
        self.given = given
        stream = _LEGACY_STREAM[int(given.__dlpack_device__()[0])]
        self.seen = dlpack.Seen(given.__dlpack__(stream=stream))
        self.place = _place(*self.seen.device)
        self.shape, self.dtype = self.seen.shape, self.seen.dtype

    def nbytes(self) -> int:
        return math.prod(self.shape) * dlpack.item_bytes(self.dtype)


def empty(like: Any, shape: tuple[int, ...]) -> Any:
    """A new array of the library and the device of `like`. Fails: ValueError (the library does not say
    how)."""
    space = getattr(like, "__array_namespace__", None)
    if space is None:
        raise ValueError(
            f"a {type(like).__name__} does not say how to make a new array (__array_namespace__), so "
            "there is no place for the result: use the operation in place"
        )
    space = space()
    try:
        return space.empty(shape, dtype=like.dtype, device=like.device)
    except TypeError:
        return space.empty(shape, dtype=like.dtype)


def copy(to: int, source: int, length: int, index: int) -> None:
    """Copies bytes within a device's memory, and waits for that. Fails: OSError (the driver)."""
    driver = ctypes.CDLL(libraries.driver_file())
    addresses = (ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(length))
    (_copy_by_hip if libraries.uses_hip() else _copy_by_cuda)(driver, addresses, index)


def _copy_by_cuda(driver, addresses, index):
    context, device = ctypes.c_void_p(), ctypes.c_int()
    _need(driver.cuDeviceGet, ctypes.byref(device), index)
    _need(driver.cuDevicePrimaryCtxRetain, ctypes.byref(context), device)
    _need(driver.cuCtxPushCurrent_v2, context)
    try:
        _need(driver.cuMemcpyAsync, *addresses, None)
        _need(driver.cuStreamSynchronize, None)
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        driver.cuDevicePrimaryCtxRelease_v2(device)


def _copy_by_hip(driver, addresses, index):
    before = ctypes.c_int()
    _need(driver.hipGetDevice, ctypes.byref(before))
    _need(driver.hipSetDevice, index)
    try:
        _need(driver.hipMemcpyAsync, *addresses, _ANY_DIRECTION, None)
        _need(driver.hipStreamSynchronize, None)
    finally:
        driver.hipSetDevice(before)


def _need(call, *arguments):
    code = call(*arguments)
    if code:
        raise OSError(f"{call.__name__} failed with error {code} while a result was copied between the GPU and the host")
