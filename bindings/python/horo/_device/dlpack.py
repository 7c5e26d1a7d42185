# SPDX-License-Identifier: Apache-2.0
"""DLPack, the form in which array libraries hand each other memory, as far as Horo writes it."""

from __future__ import annotations

import ctypes
from typing import Any

from horo import _extension

CUDA, ROCM = 2, 10  # DLDeviceType

# (DLDataTypeCode, bits) by the names of horo.h
_TYPES = {
    "uint8": (1, 8),
    "int8": (0, 8),
    "uint16": (1, 16),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "bool": (1, 8),  # libraries before 2024 do not know the code for truth values
    "bfloat16": (4, 16),
}

_NAMES = {pair: name for name, pair in _TYPES.items() if name != "bool"}
_NAMES[6, 8] = "bool"


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    """DLTensor"""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dimensions", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """DLManagedTensor"""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]

_lent: dict[int, Any] = {}  # what consumers still use, by the address of its Managed


def _give_back(address):
    _lent.pop(address, None)


_give_back_function = _Deleter(_give_back)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_NAME = b"dltensor"  # a static string: a capsule keeps only its address


def capsule(
    address: int, shape: tuple[int, ...], dtype: str, device: tuple[int, int], owner: Any = None
) -> Any:
    """A capsule for contiguous memory. `dtype`: a name as in horo.h. `owner` stays alive until the
    consumer is done."""
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    made = Managed()
    made.tensor.data = address
    made.tensor.device = _Device(*device)
    made.tensor.dimensions = len(shape)
    made.tensor.type = _Type(*_TYPES[dtype], 1)
    made.tensor.shape = extents
    made.deleter = _give_back_function
    at = ctypes.addressof(made)
    _lent[at] = (made, extents, owner)
    return _new(at, _NAME, None)


class Seen:
    """The memory behind an object's capsule: address, shape, dtype as in horo.h, device, and whether
    it is contiguous. The capsule, and with it the object's memory, lives as long as this."""

    __slots__ = ("capsule", "address", "shape", "dtype", "device", "contiguous")

    def __init__(self, made: Any) -> None:
        """Fails: ValueError (not a capsule that nobody has used; a dtype that horo.h has not)."""
        self.capsule = made
        self.address, self.shape, self.device, given, self.contiguous = read_capsule(made)
        self.dtype = _name(*given)


def _read_capsule(made):
    """(address, shape, (type of device, its index), (code, bits, lanes of the dtype), whether it is
    contiguous)"""
    tensor = Managed.from_address(_pointer(made, _NAME)).tensor
    rank, given = tensor.dimensions, tensor.type
    shape = tuple(tensor.shape[:rank])
    strides = tensor.strides[:rank] if tensor.strides else None
    return (
        (tensor.data or 0) + tensor.offset,
        shape,
        (tensor.device.type, tensor.device.index),
        (given.code, given.bits, given.lanes),
        strides is None or _in_order(shape, strides),
    )


read_capsule = _read_capsule if _extension.module is None else _extension.module.read_capsule


def item_bytes(dtype: str) -> int:
    return _TYPES[dtype][1] // 8


def _name(code, bits, lanes):
    found = _NAMES.get((code, bits)) if lanes == 1 else None
    if found is not None:
        return found
    raise ValueError(
        f"DLPack's type (code {code}, {bits} bits, {lanes} lanes) is not one of "
        + ", ".join(_TYPES)
    )


def _in_order(shape, strides):
    if 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True
