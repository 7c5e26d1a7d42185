# SPDX-License-Identifier: Apache-2.0
"""horo.run(): functions of this file as the ranks of a job, and loaders that read ahead."""

import inspect
import os
import pickle
import signal
import socket
import sys
import threading

import pytest

import horo
import horo.data
import job
from horo._runner import run as _run, talk as _talk
from horo.data import AsyncDataLoaderMixin, BaseDataLoader


def place(offset, times=1):
    import horo.numpy as hvd
    import numpy

    hvd.init()
    total = hvd.allreduce(numpy.ones(3), op=hvd.Sum)
    return hvd.rank() * times + offset, hvd.size(), total.tolist()


def fails_on_one():
    if os.environ["HORO_RANK"] == "1":
        raise KeyError("not here")
    return 1


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def leaves():
    sys.exit(0)


def waits_for_one_that_fails():
    import horo.numpy as hvd

    hvd.init()
    if hvd.rank() == 1:
        raise KeyError("not here")
    hvd.barrier()


class Unpicklable(Exception):
    def __init__(self):
        super().__init__("cannot travel")
        self.lock = threading.Lock()


def raises_what_cannot_travel():
    raise Unpicklable


def gives_what_cannot_travel():
    return threading.Lock()


def test_ranks_find_modules_where_the_caller_does(tmp_path):
    """Modules beside the package do not hide those of the standard library."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "colorsys.py").write_text("")
    (site / "horo").symlink_to(_run.PACKAGE)
    (tmp_path / "finds.py").write_text("def it():\n    import colorsys\n    return colorsys.__file__\n")
    done = job.run_alone(
        f"""
        import sys
        sys.path += [{str(tmp_path)!r}, {str(site)!r}]
        import finds, horo
        assert horo.__file__.startswith({str(site)!r})
        found = horo.run(finds.it, num_proc=1)
        assert found == [finds.it()], found
        """,
        PYTHONPATH="",
        PATH=os.pathsep.join([os.environ["HORO_TEST_BIN"], os.environ["PATH"]]),
    )
    assert done.code == 0, done.output


def test_results_in_rank_order():
    results = horo.run(place, args=(10,), kwargs={"times": 2}, num_proc=3)
    assert results == [(10 + 2 * rank, 3, [3.0] * 3) for rank in range(3)]


@pytest.mark.parametrize(
    "name, value, words",
    (
        ("func", 7, "a function"),
        ("args", 7, "a tuple of arguments"),
        ("args", "ab", "a tuple of arguments"),
        ("args", b"ab", "a tuple of arguments"),
        ("kwargs", [1], "a dict of arguments"),
        ("num_proc", "2; x", "a whole number of 1 or more"),
        ("num_proc", 0, "a whole number of 1 or more"),
        ("num_proc", None, "a whole number of 1 or more"),
        ("np", "2; x", "a whole number of 1 or more"),
        ("np", 1.5, "a whole number of 1 or more"),
        ("hosts", 2, "a text"),
        ("hostfile", ["a"], "a text"),
        ("start_timeout", "soon", "a finite number of seconds, 0 or more"),
        ("start_timeout", float("inf"), "a finite number of seconds, 0 or more"),
        ("start_timeout", float("nan"), "a finite number of seconds, 0 or more"),
        ("ssh_port", 70000, "a port, 0 to 65535"),
        ("ssh_identity_file", 1, "a text"),
        ("disable_cache", "no", "True or False"),
        ("output_filename", 1, "a text"),
        ("verbose", "loud", "True or False"),
        ("use_gloo", "yes", "True or False"),
        ("use_mpi", "yes", "True or False"),
        ("mpi_args", ["-x"], "a text"),
        ("network_interface", 1, "names separated by commas"),
        ("network_interfaces", "eth0", "a list of names"),
        ("executable", 1, "a text"),
        ("host_discovery_script", 1, "a text"),
        ("min_num_proc", 0, "a whole number of 1 or more"),
        ("max_np", "2", "a whole number of 1 or more"),
        ("slots", 0, "a whole number of 1 or more"),
        ("reset_limit", -1, "a whole number of 0 or more"),
        ("cooldown_range", (3, 2), "the least and the most seconds, as two whole numbers"),
        ("cooldown_range", 3, "the least and the most seconds, as two whole numbers"),
        ("elastic_timeout", "soon", "a finite number of seconds, 0 or more"),
    ),
)
def test_wrong_arguments_are_named(name, value, words):
    arguments = {"func": len, "args": ("abc",), name: value}
    with pytest.raises(ValueError) as caught:
        horo.run(**arguments)
    assert str(caught.value) == f"{name} is {value!r}; give {words}"


def test_options_of_elastic_jobs_are_those_of_horo_run(monkeypatch):
    calls = []

    def run_job(words, call, hosts_given, executable, ranks):
        calls.append((words, hosts_given, ranks))

    monkeypatch.setattr(_run, "_run_job", run_job)
    horo.run(
        len,
        num_proc=3,
        min_num_proc=2,
        max_num_proc=4,
        slots=2,
        reset_limit=0,
        cooldown_range=(10, 20),
        elastic_timeout=30,
        host_discovery_script="./hosts.sh",
    )
    ((words, hosts_given, ranks),) = calls
    assert " ".join(words) == (
        "-np 3 --min-np 2 --max-np 4 --slots-per-host 2 --reset-limit 0 --elastic-timeout 30 "
        "--host-discovery-script ./hosts.sh --blacklist-cooldown-range 10,20"
    )
    assert hosts_given and ranks is None
    with pytest.warns(DeprecationWarning, match="min_num_proc"):
        horo.run(len, num_proc=2, min_np=1)
    assert calls[1] == (["-np", "2", "--min-np", "1"], False, None)


def test_results_are_those_of_the_last_generation():
    """(generation, rank, ranks) -> (pickled result, failure)."""
    answers = {
        (1, 1, 3): (None, ("here", "Traceback", b"")),
        (4, 1, 2): (pickle.dumps("b"), None),
        (3, 0, 4): (pickle.dumps("early"), None),
        (4, 0, 2): (pickle.dumps("a"), None),
    }
    assert _run._collected_of_last(answers, 0) == ["a", "b"]
    with pytest.raises(horo.RankError, match="rank 1, on host here"):
        _run._collected_of_last(answers, 1)
    del answers[4, 1, 2]
    with pytest.raises(horo.HoroError, match="no result of rank 1"):
        _run._collected_of_last(answers, 0)
    with pytest.raises(horo.HoroError, match="exit code 3"):
        _run._collected_of_last({}, 3)


def test_positions_are_those_of_horovod():
    names = list(inspect.signature(horo.run).parameters)
    assert names[19:25] == "mpi_args network_interface executable np min_np max_np".split()


def test_old_name_of_num_proc():
    with pytest.warns(DeprecationWarning, match="num_proc"):
        assert horo.run(len, args=("abc",), np=1) == [3]


def test_failure_has_the_traceback(capfd):
    with pytest.raises(horo.RankError, match="rank 1(.|\n)*KeyError: 'not here'") as caught:
        horo.run(fails_on_one, num_proc=2)
    error = caught.value
    assert error.rank == 1 and error.host == socket.gethostname()
    assert "in fails_on_one" in error.traceback
    assert isinstance(error.__cause__, KeyError) and error.__cause__.args == ("not here",)
    assert "rank 1" in capfd.readouterr().err  # the report of horo run


def test_the_rank_that_failed_first_is_named():
    """The other rank fails, too, because of the first."""
    with pytest.raises(horo.RankError, match="KeyError") as caught:
        horo.run(waits_for_one_that_fails, num_proc=3)
    assert caught.value.rank == 1


def test_exception_that_cannot_be_pickled():
    with pytest.raises(horo.RankError, match="cannot travel") as caught:
        horo.run(raises_what_cannot_travel)
    assert caught.value.__cause__ is None


def test_killed_rank_is_an_error():
    with pytest.raises(horo.HoroError, match="exit code 137; there is no result of rank 0"):
        horo.run(dies)


def test_rank_that_exits_without_a_result_is_an_error():
    with pytest.raises(horo.HoroError, match="no result of rank 0: its process ended, .* code 0"):
        horo.run(leaves)


def test_result_that_cannot_be_pickled():
    with pytest.raises(horo.HoroError, match="pickle"):
        horo.run(gives_what_cannot_travel)


def test_function_that_cannot_be_pickled():
    with pytest.raises(TypeError, match="pickle"):
        horo.run(len, args=(threading.Lock(),))


def test_function_of_the_main_program_without_cloudpickle():
    done = job.run_alone(
        """
        import sys
        sys.modules["cloudpickle"] = None
        import horo
        def mine():
            pass
        try:
            horo.run(mine)
        except ValueError as error:
            print(error)
        """
    )
    assert done.code == 0 and "mine is a function of the main program" in done.output, done.output
    assert "install cloudpickle" in done.output, done.output


def test_function_of_the_main_program_with_cloudpickle():
    pytest.importorskip("cloudpickle")
    done = job.run_alone(
        """
        import horo
        factor = 3
        def mine(x):
            return x * factor
        print(horo.run(mine, args=(5,), num_proc=2))
        """
    )
    assert done.code == 0 and "[15, 15]" in done.output, done.output


def test_ranks_are_served_when_no_thread_can_be_started(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    server = _run._Server(b"the function", everywhere=False)
    try:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        port = int(server.place.split(",")[0])
        socket.create_connection(("127.0.0.1", port)).close()  # not a rank
        for rank in range(2):
            with _talk.connect(["127.0.0.1"], port, server.key) as talk:
                talk.send(pickle.dumps(None))
                assert talk.receive() == b"the function"
            with _talk.connect(["127.0.0.1"], port, server.key) as talk:
                talk.send(pickle.dumps(rank))
                talk.send(pickle.dumps((b"its answer", None)))
                assert talk.receive() == b""
        assert sorted(server.answers) == [0, 1]
    finally:
        server.close()


def test_the_server_listens_to_other_hosts_only_when_needed(monkeypatch):
    assert not _run._over_hosts(["-np", "2"])
    assert not _run._over_hosts(["-np", "2", "-H", "localhost:2"])
    assert _run._over_hosts(["-np", "2", "-H", "here:1,there:1"])
    for name, value in (
        ("SLURM_JOB_ID", "1"),
        ("SLURM_JOB_NODELIST", "here,there"),
        ("SLURM_NTASKS", "2"),
        ("SLURM_TASKS_PER_NODE", "1(x2)"),
        ("SLURM_JOB_NUM_NODES", "2"),
    ):
        monkeypatch.setenv(name, value)
    assert _run._over_hosts(["-np", "2"])


def test_options(tmp_path):
    found = horo.run(place, args=(0,), hosts="localhost:1", output_filename=str(tmp_path / "out"))
    assert found == [(0, 1, [1.0] * 3)] and (tmp_path / "out" / "rank.0").is_dir()
    for wrong in ({"hosts": "a:1", "hostfile": "b"}, {"use_gloo": True, "use_mpi": True}):
        with pytest.raises(ValueError, match="not both"):
            horo.run(len, **wrong)
    for name, value in (("reset_limit", 1), ("cooldown_range", (1, 2)), ("elastic_timeout", 5)):
        with pytest.raises(ValueError, match=f"{name} is for elastic jobs"):
            horo.run(len, **{name: value})
    with pytest.raises(ValueError, match="use_mpi"):
        horo.run(len, min_num_proc=1, use_mpi=True)
    with pytest.raises(horo.HoroError, match="exit code 2"):
        horo.run(len, hosts="node:0x")


# -- horo.data -----------------------------------------------------------------------------------


class Numbers(BaseDataLoader):
    def __init__(self, count, fail_at=None):
        self.count, self.fail_at, self.read = count, fail_at, 0

    def __len__(self):
        return self.count

    def _iterate(self):
        for number in range(self.count):
            if number == self.fail_at:
                raise OSError("disk")
            self.read += 1
            yield number

    def _process_batch(self, batch):
        return batch, threading.current_thread() is threading.main_thread()


class AsyncNumbers(AsyncDataLoaderMixin, Numbers):
    pass


@pytest.mark.parametrize("room", (0, 1, 64))
def test_loader_yields_every_epoch(room):
    loader = AsyncNumbers(room, count=100)
    assert len(loader) == 100
    for _ in range(3):
        assert list(loader) == [(number, True) for number in range(100)]
    assert threading.active_count() == 1


def test_loader_reads_ahead_up_to_its_limit():
    loader = AsyncNumbers(4, count=1000)
    batches = iter(loader)
    assert next(batches) == (0, True)
    deadline = threading.Event()
    while loader.read < 6 and not deadline.wait(0.01):  # 1 was yielded, 4 are in the queue, 1 is in the thread
        pass
    assert loader.read == 6
    batches.close()
    assert threading.active_count() == 1


def test_loader_raises_the_exception_of_its_thread():
    found = []
    with pytest.raises(OSError, match="disk"):
        for number, _ in AsyncNumbers(2, count=10, fail_at=3):
            found.append(number)
    assert found == [0, 1, 2]


def test_loader_closes():
    loader = AsyncNumbers(2, debug_data_loader=True, count=50)
    batches = iter(loader)
    next(batches)
    loader.close_async_loader()
    assert all(not thread.name.startswith("horo-data") for thread in threading.enumerate())
    with pytest.raises(ValueError, match="-1"):
        AsyncNumbers(-1, count=1)


class Stuck(AsyncDataLoaderMixin, BaseDataLoader):
    """Its source yields one batch and then hangs until it is released."""

    def __init__(self):
        super().__init__(4)
        self.let_go = threading.Event()

    def _iterate(self):
        yield 0
        self.let_go.wait()


def test_loop_can_end_while_its_source_hangs(monkeypatch):
    """An exception in the loop's body is raised, and close_async_loader() ends a loop that waits."""
    monkeypatch.setattr(horo.data, "PATIENCE_S", 0.1)
    loader = Stuck()
    with pytest.raises(KeyError, match="body"), pytest.warns(UserWarning, match="not returned"):
        for _ in loader:
            raise KeyError("body")
    loader.let_go.set()
    loader, seen = Stuck(), []

    def loop():
        try:
            for batch in loader:
                seen.append(batch)
        except RuntimeError as error:
            seen.append(str(error))

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    while not seen:
        thread.join(0.01)
    with pytest.warns(UserWarning, match="not returned"):
        loader.close_async_loader()
    thread.join(60)
    assert "closed" in seen[-1], seen
    loader.let_go.set()


def test_closed_loader_does_not_continue():
    loader = AsyncNumbers(2, count=50)
    batches = iter(loader)
    next(batches)
    loader.close_async_loader()
    with pytest.raises(RuntimeError, match="closed"):
        list(batches)


def test_loader_without_its_methods():
    with pytest.raises(NotImplementedError, match="_iterate"):
        next(iter(BaseDataLoader()))
    with pytest.raises(NotImplementedError, match="__len__"):
        len(BaseDataLoader())
