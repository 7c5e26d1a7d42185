# SPDX-License-Identifier: Apache-2.0
"""Helpers that Horovod has under this name."""

import itertools

from horo import _built


def extension_available(ext_base_name, verbose=False):
    """Whether the framework of this name can be used."""
    del verbose
    return ext_base_name == "torch"


def check_extension(ext_name, ext_env_var=None, pkg_path=None, *args):
    """Fails: ImportError (the framework of a module such as horovod.torch cannot be used)."""
    del ext_env_var, pkg_path, args
    if not extension_available(ext_name.rpartition(".")[2]):
        raise ImportError(f"{ext_name} is not part of Horo; horovod.torch is", name=ext_name)


def split_list(l, n):
    """Divides the list `l`, in order, into `n` lists whose lengths differ by at most 1."""
    length, over = divmod(len(l), n)
    rest = iter(l)
    return [list(itertools.islice(rest, length + (i < over))) for i in range(n)]


def num_rank_is_power_2(num_rank):
    """Whether the number of ranks is a power of two."""
    return bin(num_rank).count("1") == 1


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
    """Whether the framework of this name sees a GPU."""
    if not extension_available(ext_base_name, verbose):
        return False
    import torch

    return torch.cuda.is_available()
