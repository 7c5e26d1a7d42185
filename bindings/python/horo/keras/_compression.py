# SPDX-License-Identifier: Apache-2.0
"""Compression of gradients while they travel, on any backend of Keras."""

from __future__ import annotations

from typing import Any

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _name(tensor):
    """The dtype's name without its framework: "float32"."""
    return str(getattr(tensor.dtype, "name", tensor.dtype)).rpartition(".")[2]


def _cast(tensor, dtype):
    import keras

    if hasattr(keras, "ops"):
        return keras.ops.cast(tensor, dtype)
    import tensorflow as tf  # Keras 2

    return tf.cast(tensor, dtype)


class _None:
    """Sends the tensor as it is."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        del context
        return tensor


class _Cast:
    """Casts floating-point tensors; other tensors stay as they are."""

    dtype: str

    @classmethod
    def compress(cls, tensor: Any) -> tuple[Any, Any]:
        name = _name(tensor)
        if name in _FLOATS and name != cls.dtype:
            return _cast(tensor, cls.dtype), name
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        return tensor if context is None else _cast(tensor, context)


class _Float16(_Cast):
    dtype = "float16"


class _BFloat16(_Cast):
    dtype = "bfloat16"


class Compression:
    """The choices for `compression=`."""

    none = _None
    fp16 = _Float16
    bf16 = _BFloat16
