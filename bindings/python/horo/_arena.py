# SPDX-License-Identifier: Apache-2.0
"""Memory in the arena, which the ranks of a host share."""

from __future__ import annotations

import ctypes
import gc
import weakref

from horo import _job
from horo._failures import check
from horo._native import RESOURCE_EXHAUSTED, fast


def allocate(length):
    """A ctypes array of `length` bytes in the arena, with undefined contents. It is freed when the
    last object that uses it dies. Fails: ResourceError (HORO_ARENA_SIZE)."""
    _job.need()
    memory = ctypes.c_void_p()
    status = fast.horo_alloc(length, ctypes.addressof(memory))
    if status == RESOURCE_EXHAUSTED:
        gc.collect()  # optimizers that nobody uses any more may hold memory in cycles of references
        status = fast.horo_alloc(length, ctypes.addressof(memory))
    check(status)
    block = (ctypes.c_char * length).from_address(memory.value)
    weakref.finalize(block, fast.horo_free, memory.value).atexit = False
    return block
