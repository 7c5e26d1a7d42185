# SPDX-License-Identifier: Apache-2.0
"""Helpers that Horovod has under this name."""

import contextlib
import importlib.util
import itertools
import os
import re
import sysconfig
import warnings

from horo import _built


def extension_available(ext_base_name, verbose=False):
    """Whether the framework of this name is installed, and Horo has its module under Horovod's name."""
    del verbose
    names = (f"horovod.{ext_base_name}", ext_base_name)
    try:
        return all(importlib.util.find_spec(name) is not None for name in names)
    except ModuleNotFoundError:
        return False


def check_extension(ext_name, ext_env_var=None, pkg_path=None, *args):
    """Fails: ImportError (the framework of a module such as horovod.torch cannot be used)."""
    del ext_env_var, pkg_path, args
    if not extension_available(ext_name.rpartition(".")[2]):
        raise ImportError(f"{ext_name} cannot be used: its framework is not installed, or it is not part of Horo", name=ext_name)


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


rocm_built = _query(_built.rocm_built)
cuda_built = _query(_built.cuda_built)

EXTENSIONS = ["tensorflow", "torch", "mxnet"]


def get_ext_suffix():
    """The end of the file names of this Python's extension modules."""
    return sysconfig.get_config_var("EXT_SUFFIX") or ".so"


def get_extension_full_path(pkg_path, *args):
    """The path of the extension module with the last name, in the folders with the other names."""
    *folders, name = args
    return os.path.join(os.path.dirname(pkg_path), *folders, name + get_ext_suffix())


def check_installed_version(name, version, exception=None):
    """Does nothing: Horo is not built for one version of a framework."""
    del name, version, exception


@contextlib.contextmanager
def env(**kwargs):
    """Sets variables of the environment inside, except for those that are None."""
    given = {name: value for name, value in kwargs.items() if value is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def get_average_backwards_compatibility_fun(reduce_ops):
    """A function of `op` and the old `average` that returns the operation. `reduce_ops` has Average
    and Sum. That function fails: ValueError (both are given)."""

    def resolve(op, average):
        if average is None:
            return reduce_ops.Average if op is None else op
        if op is not None:
            raise ValueError("give either op or average, not both; average is deprecated")
        warnings.warn("average= is deprecated; use op=", DeprecationWarning, stacklevel=2)
        return reduce_ops.Average if average else reduce_ops.Sum

    return resolve


def is_iterable(x):
    """Whether a loop can run over `x`."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


def is_version_greater_equal_than(ver, target):
    """Whether version `ver`, such as "2.1.0+cpu", is `target` or a later one."""
    return _numbers(ver) >= _numbers(target)


def _numbers(version):
    if not isinstance(version, str) or not version[:1].isdigit():
        raise ValueError(f"the version {version!r} does not begin with a number")
    return [int(part) for part in re.match(r"\d+(\.\d+)*", version).group().split(".")]
