# SPDX-License-Identifier: Apache-2.0
"""What the collectives need from a framework.

A framework is one subclass of Face. horo._operations and horo._collectives build every collective
on it; horo.numpy and the tests (tests/python/jobs/third_face.py) show the whole of it.

An *array* is whatever the framework's users pass. A *part* is an array that the runtime can read
and write directly: contiguous real numbers in this machine's byte order, in the host's memory or in
that of a device that the runtime reaches. A part has the attributes `shape` (a sequence) and `dtype` (any value with ==).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from horo._arguments import SUM

if TYPE_CHECKING:
    from horo._device.places import Place


class Face:
    """The conversions of one framework. Methods without a default raise NotImplementedError."""

    # -- Copy in and out -------------------------------------------------------------------------

    def array(self, given: Any) -> Any:
        """`given` as an array of the framework, without a copy where possible."""
        return given

    def writable(self, given: Any) -> Any:
        """Like array(), for an operation in place. Fails: ValueError (it cannot be written)."""
        return self.array(given)

    def check(self, array: Any, op: int = SUM) -> None:
        """Refuses what cannot become a part. Fails: ValueError."""

    def view(self, array: Any) -> Any:
        """A part that shares the array's memory: the array itself if it is a part. None when that
        needs a copy."""
        raise NotImplementedError

    def copy_in(self, array: Any) -> Any:
        """A new part with the array's values."""
        raise NotImplementedError

    def copy_out(self, part: Any, array: Any) -> None:
        """Writes the values of a part into the array, which has no view()."""
        raise NotImplementedError

    def wrap(self, part: Any, like: Any) -> Any:
        """A result with the dtype and device of the array `like`, from a part with other rows that
        nobody else uses."""
        raise NotImplementedError

    # -- Allocation ------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], like: Any) -> Any:
        """A new part with the dtype of the part `like`."""
        raise NotImplementedError

    def empty_like(self, array: Any) -> Any:
        """A new array with the shape, dtype and device of `array`, for a result. It is a part if
        `array` is one."""
        raise NotImplementedError

    def splits(self, given: Any) -> Any:
        """The splits that a user passed to alltoall, as a list or None."""
        return given

    def counts(self, numbers: list[int], asked: Any) -> Any:
        """The received splits of an alltoall. `asked` are the splits that the user passed."""
        return numbers

    # -- Memory ----------------------------------------------------------------------------------

    def pointer(self, part: Any) -> int:
        """Address of a part's first element."""
        raise NotImplementedError

    def address(self, array: Any) -> int | None:
        """pointer() of an array that is itself a part; None for all others. A framework with a
        quick way overrides this: it is called for each tensor of each step."""
        return self.pointer(array) if self.view(array) is array else None

    def dtype(self, part: Any) -> str:
        """Name of a part's dtype as in horo.h, such as "float32"."""
        raise NotImplementedError

    def nbytes(self, part: Any) -> int:
        """Size of a part in bytes."""
        raise NotImplementedError

    def memory(self, part: Any) -> Any:
        """An object that keeps a part's memory alive, even if the part later gets other memory."""
        return part

    # -- Devices ---------------------------------------------------------------------------------

    def place(self, part: Any) -> Place | None:
        """Where a part is that lies in a device's memory, and on which stream it is ready; None for
        the host's memory."""
        return None

    def fill(self, part: Any, address: int, length: int, place: Place | None) -> None:
        """Copies `length` bytes from an address to a part of that size; both are at `place`."""
        assert place is None
        ctypes.memmove(self.pointer(part), address, length)

    # -- Groups ----------------------------------------------------------------------------------

    def check_group(self, arrays: list[Any]) -> None:
        """Refuses arrays that cannot be members of one group. Fails: ValueError."""


def rows_shape(count: int, part: Any) -> tuple[int, ...]:
    """The shape of `count` rows like those of a part."""
    return (count, *part.shape[1:])
