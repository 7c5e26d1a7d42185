# SPDX-License-Identifier: Apache-2.0
"""The backend horo of torch.distributed when ranks end, fail, or begin again, and when strangers connect."""

import textwrap

import pytest

from job import run

BEGIN = """
    import os, pathlib, sys, time
    import torch
    import torch.distributed as dist
    import horo.torch.distributed

    rank = int(os.environ["RANK"])

    def work():
        found = torch.full((3,), 1.0 + dist.get_rank())
        dist.all_reduce(found)
        print(f"sum {found.tolist()} of {dist.get_world_size()}", flush=True)
"""


def program(code):
    return textwrap.dedent(BEGIN) + textwrap.dedent(code)


@pytest.mark.parametrize("ending", ["before", "while"])
@pytest.mark.parametrize("backend", ["gloo", "horo", "cpu:gloo"])
def test_a_rank_that_ends_before_it_makes_a_group_is_named(ending, backend, tmp_path):
    code = """
        import os, pathlib, sys, time
        mark, ending, backend = pathlib.Path(sys.argv[1]) / "mark", sys.argv[2], sys.argv[3]
        rank = int(os.environ["RANK"])
        def await_mark():
            while not mark.exists():
                time.sleep(0.01)
        def set_mark():
            mark.with_suffix(".new").write_text(str(os.getpid()))
            mark.with_suffix(".new").rename(mark)
        if rank == 1:
            set_mark() if ending == "before" else await_mark()
            sys.exit(0)
        import torch.distributed as dist
        if backend == "horo":
            import horo.torch.distributed
        if ending == "while":
            set_mark()
        else:
            await_mark()
            while os.path.exists("/proc/" + mark.read_text()):
                time.sleep(0.01)
        dist.init_process_group(backend)
        """
    options = [] if backend == "horo" else ["--torch-backend", "horo"]
    words = ["-c", textwrap.dedent(code), str(tmp_path), ending, backend]
    done = run(2, words, limit=120, options=options)
    assert done.code != 0, done.output
    assert "init_process_group: rank 0 waited for rank 1, which ended before" in done.output, done.output


def test_ranks_may_be_late_for_as_long_as_torch_waits():
    """Horo's own limit for the start of a job is shorter than torch's for a group."""
    code = program(
        """
        from horo import _job
        if rank == 1:
            time.sleep(2)
        kept = os.environ.pop("HORO_START_TIMEOUT", None)
        dist.init_process_group("horo")
        assert "HORO_START_TIMEOUT" not in os.environ
        work()
        dist.destroy_process_group()
        assert not _job.is_initialized()
        """
    )
    done = run(2, ["-c", code], limit=120)
    assert done.code == 0 and done.output.count("sum [3.0, 3.0, 3.0] of 2") == 2, done.output


def test_a_rank_that_never_comes_is_named_when_the_time_limit_is_over():
    code = program(
        """
        import datetime
        if rank == 1:
            time.sleep(1000)
        dist.init_process_group("horo", timeout=datetime.timedelta(seconds=2))
        """
    )
    done = run(2, ["-c", code], limit=120)
    assert done.code != 0, done.output
    assert "init_process_group: rank 0 waited for rank 1, which did not call" in done.output, done.output


@pytest.mark.parametrize("late", [0, 1])
def test_the_default_group_at_once_again_on_one_port(late):
    """A rank that is early does not connect to the store of the group that rank 0 has not destroyed yet."""
    code = program(
        f"""
        for turn in range(3):
            dist.init_process_group("gloo")
            work()
            if rank == {late}:
                time.sleep(1)
            dist.destroy_process_group()
        """
    )
    done = run(2, ["-c", code], limit=120, options=["--torch-backend", "horo"])
    assert done.code == 0 and done.output.count("sum [3.0, 3.0, 3.0] of 2") == 6, done.output


def test_the_report_names_the_rank_whose_exception_came_first():
    """Its peer sees it leave within backward, as an error of torch's, before its process has ended."""
    code = program(
        """
        import atexit
        atexit.register(lambda: time.sleep(3 * rank))  # runs after Horo's own
        dist.init_process_group("horo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        for step in range(3):
            model(torch.ones(1, 2)).sum().backward()
            if rank == 1 and step == 1:
                raise ValueError("my own mistake")
        """
    )
    done = run(2, ["-c", code], limit=120)
    assert done.code == 1 and "my own mistake" in done.output, done.output
    assert "rank 1 on localhost failed first" in done.output, done.output


def test_strangers_keep_no_rank_waiting():
    """Neither those that say nothing, nor those that say something wrong."""
    code = program(
        """
        import socket
        from horo.torch.distributed import _lines

        listen, strangers = _lines._listen, []

        def listen_with_strangers(address):
            listener, where = listen(address)
            for number in range(40):
                stranger = socket.socket(socket.AF_UNIX)
                stranger.connect("\\0" + where)
                if number % 4 == 1:
                    stranger.sendall(b"GET / HTTP/1.1" * 10)
                elif number % 4 == 2:
                    stranger.sendall(b"x")
                elif number % 4 == 3:
                    stranger.close()
                strangers.append(stranger)
            return listener, where

        _lines._listen = listen_with_strangers
        dist.init_process_group("horo")
        if rank == 0:
            assert len(strangers) == 40
        group = dist.new_group([0, 1])  # uses the lines
        found = torch.ones(1)
        dist.all_reduce(found, group=group)
        work()
        dist.destroy_process_group()
        """
    )
    done = run(3, ["-c", code], limit=100)
    assert done.code == 0 and done.output.count("sum [6.0, 6.0, 6.0] of 3") == 3, done.output


def test_too_many_strangers_are_sent_away():
    from horo.torch.distributed import _welcome

    import socket
    import threading

    path = "\0horo-test-strangers-" + str(id(object()))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1024)
        kept = []
        for _ in range(_welcome.MOST_STRANGERS + 20):
            stranger = socket.socket(socket.AF_UNIX)
            stranger.connect(path)
            kept.append(stranger)

        def prove():
            line = socket.socket(socket.AF_UNIX)
            line.connect(path)
            nonce = line.recv(_welcome.NONCE)
            line.sendall(_welcome.RANK.pack(1) + nonce)
            kept.append(line)

        thread = threading.Thread(target=prove)
        thread.start()
        connections = {0: None}
        welcome = _welcome.Welcome(listener, 2, lambda nonce, rank, proof: proof == nonce)
        welcome.fill(connections, 60)
        thread.join()
        assert len(welcome._callers) <= 2 + _welcome.MOST_STRANGERS
        welcome.close()
        for one in kept + [connections[1]]:
            one.close()


@pytest.mark.parametrize("backend", ["cpu:horo,cuda:nccl", "cuda:nccl,cpu:horo"])
def test_a_backend_for_gpus_on_a_machine_without(backend):
    code = program(
        f"""
        if torch.cuda.is_available():
            print("sum [3.0, 3.0, 3.0] of 2")
            sys.exit()
        dist.init_process_group("{backend}")
        group = dist.new_group([0, 1])
        found = torch.ones(1)
        dist.all_reduce(found, group=group)
        assert found.item() == 2
        objects = [None, None]
        dist.all_gather_object(objects, rank)
        assert objects == [0, 1]
        dist.barrier()
        try:
            dist.group.WORLD._get_backend(torch.device("cuda"))
            raise SystemExit("a backend for GPUs where there is none")
        except RuntimeError as error:
            assert "has no backend for tensors of cuda" in str(error), error
        work()
        dist.destroy_process_group()
        """
    )
    done = run(2, ["-c", code], limit=120)
    assert done.code == 0 and done.output.count("sum [3.0, 3.0, 3.0] of 2") == 2, done.output
