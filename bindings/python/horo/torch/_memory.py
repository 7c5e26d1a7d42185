# SPDX-License-Identifier: Apache-2.0
"""Tensors in memory that the ranks of a host share: reduced in place, without a copy.

The memory goes back to the arena when the last tensor that uses it dies. It is not inherited
across fork: a tensor that data-loader processes read must not live there.
"""

import ctypes
import weakref

import torch

from horo import _core
from horo._native import fast


def shared_empty(shape, dtype=None):
    """An uninitialised tensor in the arena. Fails: ResourceError (HORO_ARENA_SIZE)."""
    dtype = dtype or torch.get_default_dtype()
    shape = torch.Size((shape,) if isinstance(shape, int) else shape)
    count = shape.numel()
    length = count * torch.empty((), dtype=dtype).element_size()
    if not length:
        return torch.empty(shape, dtype=dtype)
    memory = ctypes.c_void_p()
    _core.check(fast.horo_alloc(length, ctypes.addressof(memory)))
    block = (ctypes.c_char * length).from_address(memory.value)
    weakref.finalize(block, fast.horo_free, memory.value).atexit = False
    return torch.frombuffer(block, dtype=dtype).reshape(shape)


def shared_zeros(shape, dtype=None):
    """A tensor of zeros in the arena."""
    return shared_empty(shape, dtype).zero_()


def alloc_like(tensor):
    """An uninitialised contiguous tensor in the arena, of `tensor`'s shape and dtype."""
    return shared_empty(tensor.shape, tensor.dtype)
