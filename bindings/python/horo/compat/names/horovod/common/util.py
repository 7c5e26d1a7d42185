# SPDX-License-Identifier: Apache-2.0
"""What programs ask of Horovod under this name: what was built, for this process."""

from horo import _built


def extension_available(ext_base_name, verbose=False):
    """Whether the framework of that name can be used."""
    del verbose
    return ext_base_name == "torch"


def _query(function):
    def built(verbose=False):
        del verbose
        return bool(function())

    return built


mpi_built = _query(_built.mpi_built)
gloo_built = _query(_built.gloo_built)
nccl_built = _query(_built.nccl_built)
ddl_built = _query(_built.ddl_built)
ccl_built = _query(_built.ccl_built)


def gpu_available(ext_base_name, verbose=False):
    """Whether the framework of that name sees a GPU."""
    if not extension_available(ext_base_name, verbose):
        return False
    import torch

    return torch.cuda.is_available()
