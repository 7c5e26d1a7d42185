# SPDX-License-Identifier: Apache-2.0
"""Compression of gradients while they travel: a cast before the reduction and one after it.

A user's own compressor is a class with the static methods compress(tensor) -> (tensor, context) and
decompress(tensor, context) -> tensor.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor


class Compressor(Protocol):
    """The type of `compression=`: a class like this one, not an object of it."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Any]:
        """Returns the tensor that travels, and the context that decompress() needs."""
        ...

    @staticmethod
    def decompress(tensor: Tensor, context: Any) -> Tensor: ...


class _None(Compressor):
    """Sends the tensor as it is."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, context: Any) -> Tensor:
        return tensor


def _cast(tensor: Tensor, dtype: torch.dtype) -> tuple[Tensor, Any]:
    """Casts a floating-point tensor to `dtype`; other tensors stay as they are."""
    if tensor.dtype.is_floating_point and tensor.dtype != dtype:
        return tensor.to(dtype), tensor.dtype
    return tensor, None


def _back(tensor: Tensor, context: Any) -> Tensor:
    return tensor if context is None else tensor.to(context)


class _Float16(Compressor):
    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Any]:
        return _cast(tensor, torch.float16)

    decompress = staticmethod(_back)


class _BFloat16(Compressor):
    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Any]:
        return _cast(tensor, torch.bfloat16)

    decompress = staticmethod(_back)


class Compression:
    """The choices for `compression=`."""

    none = _None
    fp16 = _Float16
    bf16 = _BFloat16
