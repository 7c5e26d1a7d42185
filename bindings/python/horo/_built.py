# SPDX-License-Identifier: Apache-2.0
"""The backends of this build of Horo, and those that this job uses, under Horovod's names."""

from __future__ import annotations

import ctypes
import os

from horo import _job, _native
from horo._device import libraries
from horo._native import slow


def _has_backend(name):
    folder = os.path.join(os.path.dirname(os.path.realpath(_native.path)), "horo")
    return os.path.exists(os.path.join(folder, f"horo-backend-{name}.so"))


def mpi_built() -> bool:
    """Whether MPI can move tensors between hosts."""
    return _has_backend("openmpi") or _has_backend("mpich")


def gloo_built() -> bool:
    """Whether Gloo can move tensors between hosts."""
    return _has_backend("gloo")


def nccl_built() -> int:
    """The number of NCCL's version (22703 is 2.27.3) if collectives of CUDA tensors may use NCCL here,
    else 0: there is no GPU or no NCCL, or HORO_GPU_OPERATIONS names another way. On AMD's GPUs it is
    RCCL's version. It loads NCCL, and starts CUDA's driver in a child process only, so that this one
    may still fork. Ranks that share a GPU do not use NCCL even so."""
    if slow.horo_device_support(b"nccl"):
        return 0
    version = ctypes.c_int()
    try:
        ctypes.CDLL(libraries.collectives_file()).ncclGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        pass
    return version.value or 1


def cuda_built() -> bool:
    """Whether collectives of CUDA tensors work in the GPU's memory here: CUDA's driver is there and
    sees a GPU. It does not start the driver in this process, which may still fork children that use
    CUDA. Where it is False, such tensors are copied through the host's memory."""
    return not slow.horo_device_support(b"cuda")


def rocm_built() -> bool:
    """Whether collectives of tensors in the memory of AMD's GPUs work there: HIP's runtime is there
    and sees a GPU. It loads the runtime. Where it is False, such tensors are copied through the
    host's memory."""
    return not slow.horo_device_support(b"rocm")


def ddl_built() -> bool:
    """False: Horo does not support DDL."""
    return False


def ccl_built() -> bool:
    """False: Horo does not support oneCCL."""
    return False


def mpi_enabled() -> bool:
    """Whether MPI moves tensors between the hosts of this job. False before init()."""
    return _job.is_initialized() and _job.backend(0) in ("openmpi", "mpich")


def gloo_enabled() -> bool:
    """Whether the job works without MPI: tcp or Gloo, or on one host shared memory, moves its
    tensors."""
    return not mpi_enabled()


def mpi_threads_supported() -> bool:
    """Whether threads may call MPI at the same time as Horo. Fails: ValueError (this process does
    not use MPI)."""
    _job.size()  # raises the right error when there is no job
    query = getattr(ctypes.CDLL(None), "MPI_Query_thread", None)
    if query is None and not mpi_enabled():
        raise ValueError(
            "this process does not use MPI; the program must load it, as mpi4py does, or MPI must "
            "move tensors between the job's hosts"
        )
    level = ctypes.c_int(0)
    if query is None or query(ctypes.byref(level)):
        return False
    return level.value == 3  # MPI_THREAD_MULTIPLE in Open MPI and MPICH
