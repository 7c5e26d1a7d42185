# SPDX-License-Identifier: Apache-2.0
"""The libraries by which the runtime reaches devices: CUDA's driver and NCCL, or HIP's runtime and RCCL.
A process uses the libraries of one vendor."""

from __future__ import annotations

import os

from horo._native import slow

_AUTOMATIC = ("", "auto")


def uses_hip() -> bool:
    """Whether the runtime reaches devices by HIP's runtime. It loads a driver, unless one is loaded."""
    return not slow.horo_device_support(b"rocm")


def driver_file() -> str:
    """The file of the driver that the runtime has loaded or would load."""
    if uses_hip():
        return _file("HORO_GPU_DRIVER", "libamdhip64.so", "libamdhip64.so")
    return _file("HORO_GPU_DRIVER", "libcuda.so", "libcuda.so.1")


def collectives_file() -> str:
    """The file of NCCL or RCCL."""
    if uses_hip():
        return _file("HORO_GPU_NCCL", "librccl.so", "librccl.so.1")
    return _file("HORO_GPU_NCCL", "libnccl.so", "libnccl.so.2")


def _file(variable, prefix, fallback):
    named = os.environ.get(variable, "")
    return named if named not in _AUTOMATIC else _loaded(prefix) or fallback


def _loaded(prefix):
    """The path of a library of this process whose file name begins so; None: there is none."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            name = path[2].rpartition("/")[2]
            if path[1] and name.startswith(prefix):
                return "/" + path[2]
    return None
