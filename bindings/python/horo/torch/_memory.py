# SPDX-License-Identifier: Apache-2.0
"""Tensors in the arena, the memory that the ranks of a host share. They are reduced in place,
without a copy.

The memory returns to the arena when the last tensor that uses it dies. A forked child does not
inherit it, so a tensor that data-loader processes read must not live there.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING

import torch

from horo._arena import allocate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from torch import Tensor


# The method that returns the untyped storage: before torch 2.0, storage() returns a typed one.
STORAGE = "untyped_storage" if hasattr(torch.Tensor, "untyped_storage") else "_storage"

# Called for every submitted tensor: the type's own function is the fastest way.
memory_of: Any = getattr(torch.Tensor, STORAGE)


def storage_of(tensor):
    """The untyped storage of a tensor, which may be of a subclass with its own methods."""
    return getattr(tensor, STORAGE)()


def view_of(memory, address, dtype, shape):
    """A tensor over the part of a storage that begins at `address`."""
    empty = torch.empty(0, dtype=dtype, device=memory.device)
    offset = (address - memory.data_ptr()) // empty.element_size()
    return empty.set_(memory, offset, shape)


def _count_behind(address):
    """torch's reference count of the C++ object at `address`: c10 stores it behind the pointer to
    the virtual functions. Needed only before torch 2.1, whose layout no longer changes."""
    return ctypes.c_size_t.from_address(address + ctypes.sizeof(ctypes.c_void_p)).value


_users: Any = getattr(torch._C, "_storage_Use_Count", _count_behind)


def _counts():
    """Whether `_users` counts the tensors that use a storage correctly."""
    tensor = torch.empty(4, device="cpu")
    storage = storage_of(tensor)
    found, others = [_users(storage._cdata)], []
    for _ in range(3):
        others.append(tensor.detach())
        found.append(_users(storage._cdata))
    while others:
        others.pop()
        found.append(_users(storage._cdata))
    first = found[0]
    return 1 <= first <= 4 and [count - first for count in found] == [0, 1, 2, 3, 2, 1, 0]


COUNTS = _counts()


def shared_empty(shape: int | Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
    """An uninitialised tensor in the arena. Fails: ResourceError (HORO_ARENA_SIZE)."""
    dtype = dtype or torch.get_default_dtype()
    size = torch.Size((shape,) if isinstance(shape, int) else shape)
    count = size.numel()
    length = count * torch.empty((), dtype=dtype, device="cpu").element_size()
    if not length:
        return torch.empty(size, dtype=dtype, device="cpu")
    return torch.frombuffer(allocate(length), dtype=dtype).reshape(size)


class Place:
    """One tensor's place in the arena. held() tells whether a tensor that lies here, or a view of
    one, is still alive, so that its values are not overwritten."""

    __slots__ = ("address", "dtype", "_tensor", "_storage", "_count", "_alone", "_given")

    def __init__(self, like):
        """Fails: ResourceError (HORO_ARENA_SIZE)."""
        self._tensor = alloc_like(like)
        self.address = self._tensor.data_ptr()
        self.dtype = self._tensor.dtype
        self._storage = storage_of(self._tensor)  # keeps the object alive that _count names
        self._count = self._storage._cdata
        self._alone = _users(self._count) if COUNTS else 0
        self._given = False

    def take(self, tensor):
        """Moves a tensor here. It stays the same Python object and keeps its values."""
        self._given = True
        self._tensor.copy_(tensor)
        tensor.data = self._tensor

    def copy_of(self, tensor):
        """A new tensor here with the values of another."""
        self._given = True
        copied = self._tensor.detach()
        copied.copy_(tensor)
        return copied

    def held(self):
        """Also True when torch cannot tell."""
        return self._given and (not COUNTS or _users(self._count) > self._alone)


def alone_in_memory(tensor):
    """Whether only this dense tensor uses its memory: it is not a view, it is not shared with other
    processes, and no other tensor uses the memory. False when torch cannot tell."""
    if not COUNTS or not tensor.is_contiguous() or tensor._base is not None:
        return False
    if tensor.requires_grad or tensor.is_shared():
        return False
    storage = storage_of(tensor)
    if storage.nbytes() != tensor.numel() * tensor.element_size():
        return False
    return _users(storage._cdata) == _users_of_one()


@functools.lru_cache(maxsize=None)
def _users_of_one():
    """torch's count for a storage that one tensor uses, with the count that the look itself adds."""
    tensor = torch.empty(1, device="cpu")
    storage = storage_of(tensor)
    return _users(storage._cdata)


def shared_zeros(shape: int | Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
    """A tensor of zeros in the arena."""
    return shared_empty(shape, dtype).zero_()


def alloc_like(tensor: Tensor) -> Tensor:
    """An uninitialised contiguous tensor in the arena, of `tensor`'s shape and dtype."""
    return shared_empty(tensor.shape, tensor.dtype)
