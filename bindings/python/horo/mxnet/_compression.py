# SPDX-License-Identifier: Apache-2.0
"""Compression of gradients while they travel: a cast before the reduction and one after it."""

from __future__ import annotations

from typing import Any

import numpy


class _None:
    """Sends the array as it is."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Returns the array that travels, and the context that decompress() needs."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Returns the array with the dtype that compress() was given."""
        return tensor if ctx is None else tensor.astype(ctx)


class _Float16(_None):
    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Casts arrays of float32 and float64."""
        if numpy.dtype(tensor.dtype).name not in ("float32", "float64"):
            return tensor, None
        return tensor.astype("float16"), tensor.dtype


class Compression:
    """The choices for `compression=`."""

    none = _None
    fp16 = _Float16
