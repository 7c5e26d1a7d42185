# SPDX-License-Identifier: Apache-2.0
"""The backend horo of torch.distributed under every launcher, and when ranks are late, end or abort."""

import os
import subprocess
import sys
import textwrap

import pytest

import job
from job import run, run_alone
from tested import version_of

OLD = version_of("torch").startswith("1.")

SUM = """
    import os, sys
    import torch
    import torch.distributed as dist
    import horo.torch.distributed

    def work():
        found = torch.full((3,), 1.0 + dist.get_rank())
        dist.all_reduce(found)
        print(f"sum {found.tolist()} of {dist.get_world_size()}", flush=True)
"""


def program(code):
    return textwrap.dedent(SUM) + textwrap.dedent(code)


MAIN = program(
    """
    dist.init_process_group("horo")
    work()
    dist.destroy_process_group()
    """
)


def test_horo_run():
    done = run(2, ["-c", MAIN])
    assert done.code == 0 and done.output.count("sum [3.0, 3.0, 3.0] of 2") == 2, done.output


def test_torchrun(tmp_path):
    path = tmp_path / "main.py"
    path.write_text(MAIN)
    words = ["-m", "torch.distributed.run", "--nproc_per_node", "3", "--master_port", str(job.free_port())]
    # The defaults of torch 1.13 for these do not work under Python 3.11.
    words += ["--redirects", "1", "--tee", "1", "--log_dir", str(tmp_path / "log"), str(path)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=job.LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sum [6.0, 6.0, 6.0] of 3") == 3, done.stdout


SPAWN = """
    import tempfile
    import torch.multiprocessing as processes

    def rank_of(rank, size, method):
        for _ in range(2):  # a second job in the same processes
            dist.init_process_group("horo", init_method=method + str(_), rank=rank, world_size=size)
            work()
            dist.destroy_process_group()

    if __name__ == "__main__":
        with tempfile.TemporaryDirectory() as folder:
            processes.start_processes(
                rank_of, args=(2, "file://" + folder + "/store"), nprocs=2, start_method="fork")
"""


AGAIN = """
    import datetime, tempfile
    import torch.multiprocessing as processes
    from horo.torch.distributed import _group_names

    _group_names.KEYS = 3  # keys are dropped often

    def rank_of(rank, size, path):
        store = dist.FileStore(path, size)
        for _ in range(3):  # a default group again, with the store of the first one
            limit = datetime.timedelta(seconds=60)
            dist.init_process_group("horo", store=store, rank=rank, world_size=size, timeout=limit)
            if rank < 2:  # messages that the third rank has no key for
                for tag in range(3):
                    message = torch.full((2,), float(tag))
                    waits = [dist.isend(message, 1 - rank, tag=tag), dist.irecv(torch.zeros(2), 1 - rank, tag=tag)]
                    [one.wait() for one in waits]
            works = []
            for length in (1, 2, 3, 4, 5, 1, 2, 3):
                works.append((torch.full((length,), 1.0 + rank),))
                works[-1] += (dist.all_reduce(works[-1][0], async_op=True),)
            if rank:
                late = dist.isend(torch.full((1,), 1.0 * rank), 0)  # before the keys are dropped
            for found, one in works:
                one.wait()
                assert (found == 6).all(), found
            for length in (6, 7, 8, 9):
                dist.all_reduce(torch.ones(length))
            if rank:
                late.wait()
            else:
                for sender in (1, 2):  # after that
                    found = torch.zeros(1)
                    dist.recv(found, sender)
                    assert found.item() == sender
            work()
            dist.destroy_process_group()

    if __name__ == "__main__":
        with tempfile.TemporaryDirectory() as folder:
            processes.start_processes(rank_of, args=(3, folder + "/store"), nprocs=3, start_method="fork")
"""


@pytest.mark.skipif(OLD, reason="torch 1 counts the ranks of all default groups under one key of the store")
def test_the_default_group_again_with_one_store_and_few_keys():
    done = run_alone(program(AGAIN))
    assert done.code == 0 and done.output.count("sum [6.0, 6.0, 6.0] of 3") == 9, done.output


def test_processes_that_the_program_spawns():
    """Also when horo run has started the program as one rank of its own job."""
    for done in (run_alone(program(SPAWN)), run(1, ["-c", program(SPAWN)])):
        assert done.code == 0 and done.output.count("sum [3.0, 3.0, 3.0] of 2") == 4, done.output


def test_ranks_of_several_hosts():
    """Words instead of host names, so that two groups of ranks act as two hosts."""
    port, processes = job.free_port(), []
    for rank in range(3):
        place = {"RANK": rank, "WORLD_SIZE": 3, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        env = {**os.environ, **{name: str(value) for name, value in place.items()}}
        env["HORO_HOST_KEY"] = "first" if rank < 2 else "second"
        processes.append(
            subprocess.Popen([sys.executable, "-c", MAIN], env=env, stdout=subprocess.PIPE, text=True)
        )
    for process in processes:
        output, _ = process.communicate(timeout=job.LIMIT_S)
        assert process.returncode == 0 and "sum [6.0, 6.0, 6.0] of 3" in output


def test_a_program_that_asks_for_gloo_gets_horo(tmp_path):
    """By name, by default, and from names that were imported before; new groups, too. It says so once."""
    code = """
        import os, sys
        import torch
        from torch.distributed import all_reduce, get_backend, init_process_group, new_group
        import torch.distributed as dist
        place = dict(rank=int(os.environ["RANK"]), world_size=2)
        for backend in (*sys.argv[2:], None):
            store = f"file://{sys.argv[1]}/{backend}"
            init_process_group(*([backend] if backend else []), init_method=store, **place)
            found = torch.ones(1)
            all_reduce(found, group=new_group([0, 1], backend="gloo"))
            print("backend", get_backend(), type(dist.group.WORLD).__name__, found.item(), flush=True)
            dist.destroy_process_group()
        """
    names = ["gloo"] if OLD else ["gloo", "cpu:gloo"]  # torch 1 knows no backend per device
    done = run(2, ["-c", textwrap.dedent(code), str(tmp_path), *names], options=["--torch-backend", "horo"])
    assert done.code == 0 and done.output.count("HoroProcessGroup 2.0") == 2 * len(names) + 2, done.output
    assert done.output.count("uses the backend horo instead of gloo") == 1, done.output


def test_a_hidden_sitecustomize_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('own customisation')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run(1, ["-c", "print('program')"], options=["--torch-backend", "horo"], PYTHONPATH=path)
    assert done.code == 0 and "own customisation" in done.output, done.output
    assert "program" in done.output, done.output


def test_a_late_rank_is_named():
    code = program(
        """
        import datetime
        dist.init_process_group("horo")
        outer = dist.new_group([0, 2])
        if dist.get_rank() != 1:
            try:
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=1), wait_all_ranks=True)
            except RuntimeError as error:
                print("barrier:", error, flush=True)
            try:
                dist.all_reduce(torch.ones(1), async_op=True).wait(datetime.timedelta(seconds=1))
            except RuntimeError as error:
                print("reduce:", error, flush=True)
            found = torch.ones(1)
            dist.all_reduce(found, group=outer)  # another group goes on
            print("other", found.item(), flush=True)
        else:
            store = dist.distributed_c10d._get_default_store()
            store.wait(["done/0", "done/2"], datetime.timedelta(seconds=100))
        store = dist.distributed_c10d._get_default_store()
        store.set(f"done/{dist.get_rank()}", "1")
        """
    )
    done = run(3, ["-c", code])
    assert "Ranks 1 failed to pass monitoredBarrier" in done.output, done.output
    assert done.output.count("reduce: horo: timeout after 1 s") == 2, done.output
    assert done.output.count("rank 1 of the group did not call it") == 2, done.output
    assert done.output.count("other 2.0") == 2, done.output


def test_a_lost_rank_is_named():
    code = program(
        """
        dist.init_process_group("horo")
        work()
        if dist.get_rank() == 1:
            os._exit(3)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        model(torch.ones(1, 2)).sum().backward()
        """
    )
    done = run(2, ["-c", code])
    assert done.code == 3, done.output
    assert "PeerLostError" in done.output or "rank 1" in done.output, done.output


def test_a_rank_lost_within_a_step_is_an_error_of_backward():
    """DistributedDataParallel waits in C++ for the future of a sum that fails."""
    code = program(
        """
        import signal
        dist.init_process_group("horo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        for _ in range(2):  # the second step agrees on the buckets
            model(torch.ones(1, 2)).sum().backward()
        store = dist.distributed_c10d._get_default_store()
        if dist.get_rank() == 1:
            store.wait(["begun"])
            os.kill(os.getpid(), signal.SIGKILL)
        kind = type(dist.group.WORLD)
        begin = kind.allreduce
        def allreduce(*given):
            begun = begin(*given)
            store.set("begun", "1")
            return begun
        kind.allreduce = allreduce
        try:
            model(torch.ones(1, 2)).sum().backward()
        except RuntimeError as error:
            print("backward failed:", error, flush=True)
        """
    )
    done = run(2, ["-c", code])
    assert "backward failed:" in done.output and "rank 1 on localhost was lost" in done.output, done.output
    assert done.code == 137 and "SIGSEGV" not in done.output, done.output


def test_abort_ends_what_waits():
    code = program(
        """
        import threading
        dist.init_process_group("horo")
        work()
        if dist.get_rank() == 0:
            waiting = dist.all_reduce(torch.ones(1), async_op=True)
            future = waiting.get_future()
            threading.Timer(0.2, dist.group.WORLD.abort).start()
            for wait in (waiting.wait, future.wait, lambda: dist.barrier()):
                try:
                    wait()
                except RuntimeError as error:
                    print("ended:", error, flush=True)
        store = dist.distributed_c10d._get_default_store()
        store.set("aborted", "1") if dist.get_rank() == 0 else store.wait(["aborted"])
        dist.destroy_process_group()
        """
    )
    done = run(2, ["-c", code])
    assert done.code == 0 and done.output.count("was aborted") == 3, done.output
