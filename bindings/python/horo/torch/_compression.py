# SPDX-License-Identifier: Apache-2.0
"""Compression of gradients while they travel: a cast there and back.

An own one is a class with static compress(tensor) -> (tensor, context) and
decompress(tensor, context) -> tensor.
"""

import torch


class _None:
    """Sends the tensor as it is."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, _context):
        return tensor


class _Cast:
    """Sends floating-point tensors as `dtype`; others as they are."""

    dtype = None

    @classmethod
    def compress(cls, tensor):
        if tensor.dtype.is_floating_point and tensor.dtype != cls.dtype:
            return tensor.to(cls.dtype), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor, context):
        return tensor if context is None else tensor.to(context)


class _Float16(_Cast):
    dtype = torch.float16


class _BFloat16(_Cast):
    dtype = torch.bfloat16


class Compression:
    """The choices for `compression=`."""

    none = _None
    fp16 = _Float16
    bf16 = _BFloat16
