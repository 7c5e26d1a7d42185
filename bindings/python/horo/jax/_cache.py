# SPDX-License-Identifier: Apache-2.0
"""The ranks of a host compile the same programs. They share jax's cache of compiled programs, so
that one rank compiles a program and later starts of the job compile none."""

from __future__ import annotations

import os
import stat
import tempfile

from horo.jax._jax import jax

_LEAST_SECONDS = 0.1  # a program that compiles faster is not kept


def _folder():
    """The user's own folder in the system's folder for temporary files. None when somebody else
    has made it, or may write to it: what is in it is run as a program."""
    path = os.path.join(tempfile.gettempdir(), f"horo-jax-cache-{os.getuid()}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError:
        return None
    found = os.lstat(path)
    private = not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    return path if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and private else None


def share() -> str | None:
    """Points jax's compilation cache at a folder that the ranks of this host share, and returns it.
    Does nothing, and returns None, when the user has chosen a folder (JAX_COMPILATION_CACHE_DIR, or
    jax_compilation_cache_dir) or has switched the cache off (JAX_ENABLE_COMPILATION_CACHE=0), or when
    no safe folder can be made."""
    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:
        return None
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:  # empty: no cache
        return None
    folder = _folder()
    if folder is None:
        return None
    jax.config.update("jax_compilation_cache_dir", folder)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_SECONDS)
    return folder
