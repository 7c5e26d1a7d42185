# SPDX-License-Identifier: Apache-2.0
"""The calls of a process, as methods of the class that Horovod has under this name."""

from horo import _built, _job, _life


class HorovodBasics:
    """Ignores its arguments, which tell Horovod where the library of a framework is."""

    def __init__(self, *_library):
        pass


for _module, _names in (
    (_life, "init shutdown"),
    (_job, "is_initialized rank local_rank cross_rank size local_size cross_size"),
    (_job, "is_homogeneous start_timeline stop_timeline"),
    (_built, "mpi_threads_supported mpi_enabled mpi_built gloo_enabled gloo_built nccl_built"),
    (_built, "ddl_built ccl_built cuda_built rocm_built"),
):
    for _name in _names.split():
        setattr(HorovodBasics, _name, staticmethod(getattr(_module, _name)))
