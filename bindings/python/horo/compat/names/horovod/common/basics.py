# SPDX-License-Identifier: Apache-2.0
"""The calls of a process, as methods, for what holds them so under this name."""

from horo import _built, _core, _sets


class HorovodBasics:
    """Its arguments, where Horovod's library of a framework is, mean nothing."""

    def __init__(self, *_library):
        pass


for _module, _names in (
    (_sets, "init shutdown"),
    (_core, "is_initialized rank local_rank cross_rank size local_size cross_size"),
    (_core, "is_homogeneous start_timeline stop_timeline"),
    (_built, "mpi_threads_supported mpi_enabled mpi_built gloo_enabled gloo_built nccl_built"),
    (_built, "ddl_built ccl_built cuda_built rocm_built"),
):
    for _name in _names.split():
        setattr(HorovodBasics, _name, staticmethod(getattr(_module, _name)))
