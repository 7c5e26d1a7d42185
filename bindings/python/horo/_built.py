# SPDX-License-Identifier: Apache-2.0
"""The backends of this build of Horo, and those that this job uses, under Horovod's names."""

from __future__ import annotations

import ctypes
import os

from horo import _job, _native


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
    """The version of NCCL as a number, such as 22703, if this build and this machine have it; else
    0."""
    if not _has_backend("nccl"):
        return 0
    version = ctypes.c_int(0)
    try:
        ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return version.value


def cuda_built() -> bool:
    """Whether this build has the module for CUDA devices."""
    return _has_backend("cuda")


def rocm_built() -> bool:
    """False: Horo does not support ROCm."""
    return False


def ddl_built() -> bool:
    """False: Horo does not support DDL."""
    return False


def ccl_built() -> bool:
    """False: Horo does not support oneCCL."""
    return False


def _first(*names):
    values = (os.environ.get(name, "") for name in names)
    return next((value.lower() for value in values if value), "")


def mpi_enabled() -> bool:
    """Whether MPI has started the ranks (`horo run --mpi`, mpirun), or moves tensors because
    HORO_CPU_OPERATIONS=mpi. When this is False, gloo_enabled() is True."""
    if _first("HORO_CPU_OPERATIONS", "HOROVOD_CPU_OPERATIONS") == "mpi":
        return True
    if _first("HORO_CONTROLLER", "HOROVOD_CONTROLLER"):
        return _first("HORO_CONTROLLER", "HOROVOD_CONTROLLER") == "mpi"
    return bool(_first("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MPI_LOCALRANKID"))


def gloo_enabled() -> bool:
    """Whether the ranks met without MPI. On one host shared memory moves the tensors in both
    cases."""
    return not mpi_enabled()


def mpi_threads_supported() -> bool:
    """Whether threads may call MPI at the same time as Horo. Fails: ValueError (MPI is not
    enabled)."""
    _job.size()  # raises the right error when there is no job
    if not mpi_enabled():
        raise ValueError("MPI is not enabled; start the job with horo run --mpi or with mpirun")
    query = getattr(ctypes.CDLL(None), "MPI_Query_thread", None)
    level = ctypes.c_int(0)
    if query is None or query(ctypes.byref(level)):
        return False
    return level.value == 3  # MPI_THREAD_MULTIPLE in Open MPI and MPICH
