# SPDX-License-Identifier: Apache-2.0
"""horo.torch has every public name of Horovod's, with the same parameters and defaults."""

import inspect

import pytest
import torch

import api
import horo.torch as horo


def described(function):
    """A function's parameters, written as in the table."""
    named = {id(getattr(horo, op)): op for op in api.OPS}
    rows = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        if default is inspect.Parameter.empty:
            rows.append(parameter.name)
        elif default is horo.global_process_set:
            rows.append(f"{parameter.name}=G")
        elif default is horo.Compression.none:
            rows.append(f"{parameter.name}=Compression.none")
        elif parameter.name == "op" and default is not None:
            rows.append(f"{parameter.name}={named[id(default)]}")
        else:
            rows.append(f"{parameter.name}={default!r}")
    return rows


@pytest.mark.parametrize("name", api.FUNCTIONS)
def test_parameters(name):
    wanted = [word for word in api.FUNCTIONS[name].split(", ") if word]
    found = described(getattr(horo, name))
    assert found[: len(wanted)] == wanted
    assert all("=" in further for further in found[len(wanted) :]), found


def test_every_name_is_public():
    for name in (*api.FUNCTIONS, *api.OPS, *api.NAMES):
        assert hasattr(horo, name) and name in horo.__all__, name
    for name in api.COMPRESSIONS:
        kept, context = getattr(horo.Compression, name).compress(torch.ones(3))
        assert getattr(horo.Compression, name).decompress(kept, context).equal(torch.ones(3))


def test_operations_differ():
    assert len({getattr(horo, op) for op in api.OPS}) == len(api.OPS)


def test_a_process_set_before_init():
    some = horo.ProcessSet([0])
    assert all(hasattr(some, name) for name in api.PROCESS_SET)
    assert some.rank() is None and some.size() is None and some.included() is None
    assert some.process_set_id is None and some.mpi_comm is None
    assert horo.global_process_set.process_set_id == 0


def test_errors_and_versions():
    assert issubclass(horo.HorovodInternalError, RuntimeError)
    assert horo.__version__.count(".") == 2


def test_built():
    for name in ("mpi", "gloo", "ddl", "ccl", "cuda", "rocm"):
        assert getattr(horo, f"{name}_built")() in (True, False)
    assert not horo.ddl_built() and not horo.ccl_built() and not horo.rocm_built()
    assert isinstance(horo.nccl_built(), int) and not isinstance(horo.nccl_built(), bool)
    assert horo.mpi_enabled() is not horo.gloo_enabled()


@pytest.mark.parametrize("name", ("rank", "size", "mpi_threads_supported", "is_homogeneous"))
def test_needs_init(name):
    with pytest.raises(ValueError, match="init"):
        getattr(horo, name)()


def test_optimizer_of_one_rank():
    horo.init(comm=[0])
    try:
        weight = torch.nn.Parameter(torch.ones(2))
        plain = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
        for op in (horo.Average, horo.Sum, horo.Adasum):
            made = horo.DistributedOptimizer(plain, [("weight", weight)], op=op)
            assert all(hasattr(made, name) for name in api.OPTIMIZER)
            assert isinstance(made, torch.optim.SGD) and type(made).__name__ == "SGD"
            assert made.param_groups is plain.param_groups
    finally:
        horo.shutdown()


@pytest.mark.parametrize("comm", ([0, 1], [1], 7))
def test_comm_of_another_job_is_refused(comm):
    with pytest.raises(ValueError, match="comm"):
        horo.init(comm=comm)
    assert not horo.is_initialized()
