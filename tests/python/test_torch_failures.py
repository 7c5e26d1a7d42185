# SPDX-License-Identifier: Apache-2.0
"""Trainings that end too early on one rank: no hang, and the words say why."""

import os
import signal
import subprocess
import sys
import textwrap

import job
from job import run, run_code

TRAIN = """
    import os, sys, torch
    import horo.torch as horo
    horo.init()
    torch.set_num_threads(1)
    network = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    optimizer = horo.DistributedOptimizer(optimizer, network.named_parameters())
    def backward():
        optimizer.zero_grad()
        network(torch.ones(3, 4)).sum().backward()
    backward()
    optimizer.step()
"""


def program(code):
    return textwrap.dedent(TRAIN) + textwrap.dedent(code)


def test_exception_in_backward_ends_the_job():
    done = run_code(
        2,
        program(
            """
            if horo.rank() == 1:
                network[1].weight.register_hook(lambda grad: 1 / 0)
                backward()
            try:
                backward()
                optimizer.step()
                raise SystemExit("a step without its peer")
            except horo.HorovodInternalError as error:
                print("saw:", error, flush=True)
                raise
            """
        ),
    )
    assert done.code == 1, done.output
    assert "ZeroDivisionError" in done.output and "saw: " in done.output, done.output


def test_rank_that_skips_a_batch():
    """One rank steps once more than the other, which has left."""
    done = run_code(
        2,
        program(
            """
            for step in range(4):
                if step == 2 and horo.rank() == 1:
                    continue
                backward()
                optimizer.step()
            """
        ),
    )
    assert done.code == 1, done.output
    assert "ShutDownError" in done.output and "rank 1" in done.output, done.output


def test_rank_that_skips_a_batch_and_goes_on_is_named():
    done = run(
        2,
        ["-c", program(
            """
            if horo.rank() == 0:
                backward()
                optimizer.step()
            horo.allreduce(torch.ones(1), name="metric")
            """
        )],
        HORO_STALL_WARNING_TIME="2s",
        HORO_STALL_SHUTDOWN_TIME="6s",
    )
    assert done.code != 0, done.output
    stall = [line for line in done.output.splitlines() if "allreduce.0.weight" in line]
    assert stall and any("rank 1" in line and "allreduce.metric" in line for line in stall), done.output


def test_interpreter_ends_with_operations_in_flight():
    """Handles nobody waits for, gradients nobody steps by, and a thread that waits."""
    done = run_code(
        2,
        program(
            """
            import threading
            kept = horo.allreduce_async(torch.ones(1 << 20), name=f"only on {horo.rank()}")
            other = horo.allreduce_async(torch.ones(9), name=f"other of {horo.rank()}")
            def wait():
                try:
                    horo.synchronize(other)
                except horo.HoroError:
                    print("the thread saw the end", flush=True)
            threading.Thread(target=wait, daemon=True).start()
            if horo.rank() == 0:
                backward()
            horo.barrier()
            print("done", flush=True)
            """
        ),
    )
    assert done.code == 0 and done.output.count("done") == 2, done.output
    assert "Traceback" not in done.output and "Fatal" not in done.output, done.output


def test_forked_child_that_ends_as_a_program():
    done = run_code(
        2,
        program(
            """
            child = os.fork()
            if child == 0:
                sys.exit(5)
            assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 5
            backward()
            optimizer.step()
            print("done", flush=True)
            """
        ),
    )
    assert done.code == 0 and done.output.count("done") == 2, done.output
    assert "Traceback" not in done.output, done.output


NOTEBOOK = """
import sys, horo
def cell():
    import time
    import horo.numpy as hvd
    hvd.init()
    print("ready", flush=True)
    if hvd.rank() == 0:
        hvd.barrier()
    time.sleep(600)
if __name__ == "__main__":
    import test_cell
    try:
        horo.run(test_cell.cell, num_proc=2)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(horo.run(abs, args=(-3,), num_proc=2), flush=True)
"""


def test_interrupt_in_a_notebook(tmp_path):
    """As a kernel does: SIGINT to the process alone. The ranks are gone, and the next cell runs."""
    (tmp_path / "test_cell.py").write_text(NOTEBOOK)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "test_cell.py")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    seen = []
    for line in process.stdout:
        seen.append(line)
        if sum("ready" in one for one in seen) == 2:
            break

    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=job.LIMIT_S)
    assert process.returncode == 0, "".join(seen) + output
    assert "interrupted" in output and "[3, 3]" in output, output

