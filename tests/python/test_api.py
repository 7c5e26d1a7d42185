# SPDX-License-Identifier: Apache-2.0
"""horo.torch has every public name of Horovod's, with the same parameters and defaults."""

import inspect

import pytest
import torch

import api
import job
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


def test_built(monkeypatch):
    monkeypatch.setenv("HORO_GPU_DRIVER", "/nowhere/libcuda.so.1")  # as on a machine without a GPU
    for name in ("mpi", "gloo", "ddl", "ccl", "cuda", "rocm"):
        assert getattr(horo, f"{name}_built")() in (True, False)
    assert not horo.ddl_built() and not horo.ccl_built() and not horo.rocm_built()
    # Programs scale their learning rate by these: they say what collectives use, not what there is.
    assert horo.nccl_built() == 0 and not isinstance(horo.nccl_built(), bool)
    assert horo.cuda_built() is False
    assert horo.mpi_enabled() is False and horo.gloo_enabled() is True


def test_mpi_is_enabled_only_where_it_moves_tensors():
    """Neither a variable of a launcher nor a knob that has no effect on one host makes it so."""
    done = job.run(
        2,
        ["-c", "import horo.torch as h; h.init(); assert not h.mpi_enabled() and h.gloo_enabled()"],
        PMI_RANK="0",
        HORO_CPU_OPERATIONS="mpi",
    )
    assert done.code == 0, done.output
    done = job.run_alone(
        """
        import horo.torch as horo
        from horo import _job
        horo.init()
        assert not horo.mpi_enabled()
        for name, enabled in (("tcp", False), ("gloo", False), ("openmpi", True), ("mpich", True)):
            _job.backend = lambda number: name
            assert horo.mpi_enabled() is enabled and horo.gloo_enabled() is not enabled
        """
    )
    assert done.code == 0, done.output


def test_ranks_with_jobs_of_their_own_are_not_warned_of_each_others_trace(tmp_path, monkeypatch):
    trace = tmp_path / "trace.json"
    monkeypatch.setenv("HOROVOD_TIMELINE", str(trace))
    done = job.run_code(
        2,
        f"""
        import os, pathlib, time
        import horo.torch as horo
        own = int(os.environ["HORO_RANK"])
        folder = pathlib.Path({str(tmp_path)!r})
        horo.init(comm=[own])
        (folder / str(own)).touch()
        while not (folder / str(1 - own)).exists():
            time.sleep(0.01)
        horo.shutdown()
        """,
    )
    assert done.code == 0, done.output
    assert "warning" not in done.output
    assert trace.exists()


def test_a_list_of_only_this_rank_is_a_job_alone():
    done = job.run_code(
        2,
        """
        import os
        import horo.torch as horo
        import torch
        own = int(os.environ["HORO_RANK"])
        horo.init(comm=[own])
        assert (horo.rank(), horo.size(), horo.local_size()) == (0, 1, 1)
        assert horo.allreduce(torch.ones(2), op=horo.Sum).tolist() == [1, 1]
        horo.shutdown()
        try:
            horo.init(comm=[7])
            raise SystemExit("a rank that does not exist")
        except ValueError as error:
            assert "comm is ranks [7]" in str(error), error
        horo.init(comm=[0, 1])
        assert horo.size() == 2
        """,
    )
    assert done.code == 0, done.output


@pytest.mark.parametrize("ranks", ([0], [0, 1]))
def test_a_part_of_the_job_is_refused_before_any_rank_waits(ranks):
    """The ranks refuse it by their launcher's variables. No other rank is there to be waited for."""
    done = job.run_alone(
        f"""
        import horo.torch as horo
        from horo import _life
        class Waits:
            def horo_init(self):
                raise SystemExit("this rank would wait for the others")
        _life.slow = Waits()
        try:
            horo.init(comm={ranks})
            raise SystemExit("it was accepted")
        except ValueError as error:
            words = "comm is ranks {ranks}, but this job has 4 ranks and this is rank 1"
            assert words in str(error), error
        """,
        HORO_RANK="",
        RANK="1",
        WORLD_SIZE="4",
    )
    assert done.code == 0, done.output


def test_an_empty_variable_of_a_launcher_counts_as_unset():
    done = job.run_alone(
        """
        import horo.torch as horo
        horo.init(comm=[1])
        assert (horo.rank(), horo.size()) == (0, 1)
        """,
        HORO_RANK="",
        RANK="",
        WORLD_SIZE="",
        OMPI_COMM_WORLD_RANK="1",
        OMPI_COMM_WORLD_SIZE="4",
    )
    assert done.code == 0, done.output


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
