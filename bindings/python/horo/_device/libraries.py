# SPDX-License-Identifier: Apache-2.0
"""The libraries by which the runtime reaches devices: CUDA's driver and NCCL, or HIP's runtime and RCCL.
A process uses the libraries of one vendor."""

from __future__ import annotations

from horo._native import slow


def uses_hip() -> bool:
    """Whether the runtime reaches devices by HIP's runtime. It loads a driver, unless one is loaded."""
    return not slow.horo_device_support(b"rocm")


def driver_file() -> str:
    """The file of the driver that the runtime has loaded. Fails: OSError (it has loaded none)."""
    return _file(b"rocm" if uses_hip() else b"cuda")


def collectives_file() -> str:
    """The file of NCCL or RCCL. Fails: as driver_file()."""
    return _file(b"nccl")


def _file(what):
    file = slow.horo_device_library(what)
    if file is None:
        raise OSError(f"this process has loaded no library for {what.decode()}")
    return file.decode()
