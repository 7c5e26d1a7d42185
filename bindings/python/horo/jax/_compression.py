# SPDX-License-Identifier: Apache-2.0
"""Compression of gradients while they travel: a cast before the reduction and one after it.

A user's own compressor is a class with the static methods compress(array) -> (array, context) and
decompress(array, context) -> array.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


class Compressor:
    """The type of `compression=`: a class like this one, not an object of it. It sends the array as
    it is."""

    @staticmethod
    def compress(array: Any) -> tuple[Any, Any]:
        """Returns the array that travels, and the context that decompress() needs."""
        return array, None

    @staticmethod
    def decompress(array: Any, context: Any) -> Any:
        return array if context is None else array.astype(context)


def _cast(array, dtype):
    """Casts a floating-point array to `dtype`; other arrays stay as they are."""
    if jnp.issubdtype(array.dtype, jnp.floating) and array.dtype != dtype:
        return array.astype(dtype), array.dtype
    return array, None


class _Float16(Compressor):
    @staticmethod
    def compress(array: Any) -> tuple[Any, Any]:
        return _cast(array, jnp.float16)


class _BFloat16(Compressor):
    @staticmethod
    def compress(array: Any) -> tuple[Any, Any]:
        return _cast(array, jnp.bfloat16)


class Compression:
    """The choices for `compression=`."""

    none = Compressor
    fp16 = _Float16
    bf16 = _BFloat16
