# SPDX-License-Identifier: Apache-2.0
"""init() and shutdown() of horo.jax."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from horo import _job, _life
from horo.jax import _cache, _ffi

if TYPE_CHECKING:
    from collections.abc import Iterable

    from horo._sets import ProcessSet


def init(
    comm: Any = None,
    process_sets: Iterable[ProcessSet | Iterable[int]] | str | None = None,
    compilation_cache: bool = True,
) -> list[ProcessSet]:
    """Joins the job, as horo.numpy.init() does. With `compilation_cache`, the ranks of a host then
    share jax's cache of compiled programs, in a folder of the user's own below the folder for
    temporary files. A folder that the user has chosen is left alone, and
    JAX_ENABLE_COMPILATION_CACHE=0 switches the cache off."""
    joins = not _job.is_initialized()
    sets = _life.init(comm, process_sets)
    if joins:
        _ffi.forget()
    if compilation_cache and _job.size() > 1:
        _cache.share()
    return sets


def shutdown() -> None:
    """Leaves the job, as horo.numpy.shutdown() does, after the programs with collectives have ended
    that this process has started. While an exception is handled, it does not wait for them."""
    if sys.exc_info()[0] is None:
        _ffi.wait_for_programs()
    _life.shutdown()


_life.before_leaving.append(_ffi.wait_for_programs)
