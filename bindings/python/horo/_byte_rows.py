# SPDX-License-Identifier: Apache-2.0
"""Collectives on plain bytes, for what Horo itself exchanges: pickled objects, digests, layouts."""

from __future__ import annotations

import ctypes

from horo._face import Face
from horo._operations import Operations


class ByteRows:
    """Bytes in rows of `width`; the number of rows may differ between ranks. `data` is writable."""

    __slots__ = ("data", "shape", "dtype", "_view")

    def __init__(self, data, width=1):
        self.data = data
        self.shape = (len(data) // width, width)
        self.dtype = "uint8"
        self._view = None

    def address(self):
        if self._view is None:  # an array of length 0 has no address, and needs none
            self._view = (ctypes.c_char * max(len(self.data), 1)).from_buffer(
                self.data if len(self.data) else bytearray(1)
            )
        return ctypes.addressof(self._view)

    def rows(self):
        """The rows, each as bytes."""
        width = self.shape[1]
        data = bytes(self.data)
        return [data[start : start + width] for start in range(0, len(data), width)]


class _ByteFace(Face):
    def view(self, array):
        return array

    def wrap(self, part, like):
        return part

    def empty(self, shape, like):
        return ByteRows(bytearray(shape[0] * shape[1]), shape[1])

    def empty_like(self, array):
        return self.empty(array.shape, array)

    def pointer(self, part):
        return part.address()

    def dtype(self, part):
        return part.dtype

    def nbytes(self, part):
        return len(part.data)


BYTES = Operations(_ByteFace())
