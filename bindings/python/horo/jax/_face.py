# SPDX-License-Identifier: Apache-2.0
"""jax's arrays outside jit: in the memory of the CPU they are read and written where they are."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy

from horo._arguments import AVERAGE, OP_NAMES, PRODUCT, SUM
from horo._face import Face
from horo._native import DTYPES
from horo.jax._jax import jax

_ALIGNMENT = 64  # of the arrays that jax takes over without a copy
_UNSIGNED = {"uint32": "int32", "uint64": "int64"}  # sums and products have the same bits
_REAL = {"complex64": "float32", "complex128": "float64"}


class Part:
    """Memory as the runtime sees it. `owner` keeps it alive."""

    __slots__ = ("shape", "dtype", "pointer", "nbytes", "owner")

    def __init__(self, shape, dtype, pointer, owner):
        self.shape = tuple(shape)
        self.dtype = dtype  # its name
        self.pointer = pointer
        self.nbytes = math.prod(self.shape) * jax.numpy.dtype(dtype).itemsize
        self.owner = owner


def refuse(dtype, op, factors=(1.0, 1.0)):
    """Fails: ValueError (the ranks cannot exchange arrays of this dtype, or reduce them so)."""
    name = str(dtype)
    if name in _REAL:
        if op not in (SUM, AVERAGE):
            raise ValueError(f"op={OP_NAMES[op]} of {name}: complex arrays reduce by Sum or Average")
    elif name in _UNSIGNED:
        if op not in (SUM, PRODUCT) or factors != (1.0, 1.0):
            raise ValueError(
                f"op={OP_NAMES[op]} of {name}: unsigned integers of 32 and 64 bits reduce by Sum or "
                "Product without factors; convert the array first"
            )
    elif name not in DTYPES:
        hint = "use jax.random.key_data()" if name.startswith("key<") else "convert it first"
        known = ", ".join([*DTYPES, *_UNSIGNED, *_REAL])
        raise ValueError(f"the ranks cannot exchange arrays of dtype {name}; {hint}: {known}")


class _Exported:
    """Memory for jax.dlpack.from_dlpack, in a dtype that numpy's own export may not know."""

    # DLPack's type codes: signed 0, unsigned 1, float 2, bfloat 4, complex 5, bool 6
    _CODES = {"bfloat16": 4, "bool": 6}

    def __init__(self, memory, name):
        self._memory, self._code = memory, self._CODES.get(name)

    def __dlpack_device__(self):
        return self._memory.__dlpack_device__()

    def __dlpack__(self, **_):
        capsule = self._memory.__dlpack__()
        if self._code is not None:  # data, device, ndim, dtype: the code is the first byte of it
            address = _capsule_pointer(capsule, b"dltensor")
            ctypes.c_uint8.from_address(address + 20).value = self._code
        return capsule


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_PLAIN = {"bfloat16": "uint16", "bool": "uint8"}  # what numpy can export, of the same size


def _allocate(shape, name):
    """(new memory as an array that numpy can export, its address)."""
    plain = numpy.dtype(_PLAIN.get(name, name))
    length = math.prod(shape) * plain.itemsize
    room = numpy.empty(length + _ALIGNMENT, numpy.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    memory = room[start : start + length].view(plain).reshape(shape)
    return memory, room.ctypes.data + start


def _as_jax(memory, name, like):
    """The memory as an array of jax, on the device of `like`."""
    if not memory.size:
        return jax.numpy.zeros(memory.shape, name, device=_device(like))
    array = jax.dlpack.from_dlpack(_Exported(memory, name))
    device = _device(like)
    return array if array.devices() == {device} else jax.device_put(array, device)


def _device(array):
    return next(iter(array.devices()))


class JaxFace(Face):
    """A complex array becomes a part with two real numbers in one more dimension. A result is
    written into new memory, which jax then takes over by DLPack."""

    def array(self, given):
        if isinstance(given, jax.core.Tracer):
            raise ValueError(
                "inside jit only the functions without _async work; call allreduce() and the others"
            )
        array = given if isinstance(given, jax.Array) else jax.numpy.asarray(given)
        devices = array.devices()
        if len(devices) != 1:
            raise ValueError(
                f"the array lies on {len(devices)} devices; each rank gives an array of one device"
            )
        device = next(iter(devices))
        if device.platform != "cpu":
            raise ValueError(
                f"the array is on {device}; Horo moves arrays in the host's memory: "
                'jax.device_put(array, jax.devices("cpu")[0])'
            )
        refuse(array.dtype, SUM)
        return array

    def writable(self, given):
        raise ValueError(
            "arrays of jax cannot be changed in place; give allreduce() a donated argument of jit"
        )

    def check(self, array, op=SUM):
        refuse(array.dtype, op)

    def view(self, array):
        name = str(array.dtype)
        array.block_until_ready()
        pointer = array.unsafe_buffer_pointer() if array.size else 0
        if name in _REAL:
            return Part((*array.shape, 2), _REAL[name], pointer, array)
        return Part(array.shape, name, pointer, array)

    def wrap(self, part, like):
        name = str(like.dtype)
        memory = part.owner
        if name in _REAL:
            memory = memory.view(name)[..., 0]
        return _as_jax(memory, name, like)

    def empty(self, shape, like):
        memory, pointer = _allocate(shape, like.dtype)
        return Part(shape, like.dtype, pointer, memory)

    def empty_like(self, array):
        name = str(array.dtype)
        return _as_jax(_allocate(array.shape, name)[0], name, array)

    def splits(self, given):
        return None if given is None else numpy.asarray(given).tolist()

    def counts(self, numbers, asked):
        return numpy.array(numbers, numpy.int32)

    def pointer(self, part):
        return part.pointer

    def address(self, array):
        return None  # no array of jax is itself a part

    def dtype(self, part):
        return _UNSIGNED.get(part.dtype, part.dtype)

    def nbytes(self, part):
        return part.nbytes

    def memory(self, part: Any) -> Any:
        return part.owner
