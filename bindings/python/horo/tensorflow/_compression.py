# SPDX-License-Identifier: Apache-2.0
"""Compression of tensors while they travel: a cast before the reduction and one after it.

A user's own compressor is a class with the static methods compress(tensor) -> (tensor, context) and
decompress(tensor, context) -> tensor.
"""

from __future__ import annotations

from typing import Any, Protocol

import tensorflow as tf


class Compressor(Protocol):
    """The type of `compression=`: a class like this one, not an object of it."""

    @staticmethod
    def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, Any]:
        """Returns the tensor that travels, and the context that decompress() needs."""
        ...

    @staticmethod
    def decompress(tensor: tf.Tensor, context: Any) -> tf.Tensor: ...


class _None(Compressor):
    """Sends the tensor as it is."""

    @staticmethod
    def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: tf.Tensor, context: Any) -> tf.Tensor:
        return tensor


class _Cast(Compressor):
    """Casts floating-point tensors; other tensors stay as they are."""

    dtype: tf.DType

    @classmethod
    def compress(cls, tensor: tf.Tensor) -> tuple[tf.Tensor, Any]:
        if tensor.dtype.is_floating and tensor.dtype != cls.dtype:
            return tf.cast(tensor, cls.dtype), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor: tf.Tensor, context: Any) -> tf.Tensor:
        return tensor if context is None else tf.cast(tensor, context)


class _Float16(_Cast):
    dtype = tf.float16


class _BFloat16(_Cast):
    dtype = tf.bfloat16


class Compression:
    """The choices for `compression=`."""

    none = _None
    fp16 = _Float16
    bf16 = _BFloat16
