# SPDX-License-Identifier: Apache-2.0
"""Trainings that end too early on one rank: the job does not hang, and the message says why."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import job
from horo import _extension
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
    """One rank makes one step more than the other, which has left."""
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


def test_rank_that_skips_a_batch_and_continues_is_named():
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
    """There are handles that are never waited for, gradients without a step, and a waiting thread."""
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


# A thread waits in a hook of backward, so frames of torch's C++ code are between it and Python's. It
# finds no way back into the interpreter, which has begun to end: nothing has told it to.
WAITS_IN_BACKWARD = """
    import atexit, sys, threading, time
    from horo import _handles, _life
    _handles.SLICE_MS = 1
    other = horo.allreduce_async(torch.ones(9), name=f"only on {horo.rank()}")

    def hook(gradient):
        horo.synchronize(other)

    def backward_there():
        weight = torch.ones(1, requires_grad=True)
        weight.register_hook(hook)
        (weight * 2).sum().backward()

    class Last:
        def __del__(self, sleep=time.sleep):
            for _ in range(200):  # each one gives the waiting thread the interpreter lock
                sleep(0.001)

    threading.Thread(target=backward_there, daemon=True).start()
    while not _handles.waiting_threads():
        time.sleep(0)
    horo.barrier()
    atexit.unregister(_life._leave)
    sys.modules["destroyed at the end"] = Last()
    print("done", flush=True)
"""


def test_interpreter_ends_while_a_thread_waits_inside_backward():
    if _extension.module is None:
        pytest.skip("by ctypes, Python ends such a thread, and torch then aborts")
    done = run_code(2, program(WAITS_IN_BACKWARD))
    assert done.code == 0 and done.output.count("done") == 2, done.output
    assert "terminate" not in done.output, done.output


def test_interpreter_ends_after_the_threads_that_it_woke_have_written():
    """Python aborts when it ends while a thread writes to a standard stream."""
    done = run_code(
        2,
        program(
            """
            import threading, time
            from horo import _handles
            other = horo.allreduce_async(torch.ones(9), name=f"other of {horo.rank()}")

            def wait():
                try:
                    horo.synchronize(other)
                except horo.ShutDownError:
                    for _ in range(3):
                        print("the thread saw the end" + 5000 * " and so on", flush=True)

            threading.Thread(target=wait, daemon=True).start()
            while not _handles.waiting_threads():
                time.sleep(0)
            horo.barrier()
            """
        ),
    )
    assert done.code == 0 and done.output.count("saw the end") == 6, done.output[-3000:]
    assert "Fatal" not in done.output, done.output[-3000:]


def test_optimizer_dropped_with_gradients_in_flight():
    """An exception ends the step, and the caller drops model and optimizer. The memory that the
    runtime still writes to stays allocated until it has written."""
    done = run_code(
        2,
        """
        import gc, torch
        import horo.torch as horo
        from horo import _handles
        horo.init()
        def attempt():
            network = torch.nn.Sequential(torch.nn.Linear(2000, 2000), torch.nn.Linear(2000, 30))
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            optimizer = horo.DistributedOptimizer(optimizer, network.named_parameters())
            network(torch.ones(1, 2000)).sum().backward()
            optimizer.step()  # in the first step, ranks wait for each other
            optimizer.zero_grad()
            if horo.rank() == 0:
                network(torch.ones(1, 2000)).sum().backward()
                raise RuntimeError("out of memory, say")
            horo.barrier()  # rank 0 has dropped everything
            network(torch.ones(1, 2000)).sum().backward()
            optimizer.step()
        try:
            attempt()
        except RuntimeError:
            pass
        gc.collect()
        if horo.rank() == 0:
            shapes = ((2000, 2000), (30, 2000), (2000,), (30,))
            fresh = [torch.zeros(shape) for shape in shapes for _ in range(3)]
            assert len(_handles._abandoned) == 4
            horo.barrier()
        horo.barrier()  # rank 1 has stepped
        if horo.rank() == 0:
            assert all((tensor == 0).all() for tensor in fresh)
        model = torch.nn.Linear(3, 2)
        again = horo.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        assert not _handles._abandoned
        horo.barrier()
        print("done", flush=True)
        """,
    )
    assert done.code == 0 and done.output.count("done") == 2, done.output


def test_interrupt_in_a_hook():
    """step() reduces the gradients that the hook had not submitted, on all ranks."""
    done = run_code(
        2,
        """
        import torch
        import horo.torch as horo
        horo.init()
        due = [horo.rank() == 0]
        class Interrupted(horo.Compression.none):
            @staticmethod
            def compress(tensor):
                if due.pop() if due else False:
                    raise KeyboardInterrupt
                return tensor, None
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = horo.DistributedOptimizer(
            optimizer, model.named_parameters(), compression=Interrupted
        )
        try:
            model(torch.ones(1, 3)).sum().mul(horo.rank() + 1).backward()
            assert horo.rank() == 1
        except KeyboardInterrupt:
            pass
        optimizer.step()
        assert model.bias.grad.tolist() == [1.5, 1.5], model.bias.grad
        print("done", flush=True)
        """,
    )
    assert done.code == 0 and done.output.count("done") == 2, done.output


@pytest.mark.parametrize("again", ("optimizer.step()", "pass"))
def test_interrupt_in_the_optimizers_own_step(again):
    """The gradients are reduced already: a second step() reduces nothing, and later gradients are
    reduced as on the rank that was not interrupted."""
    done = run_code(
        2,
        f"""
        import torch
        import horo.torch as horo
        horo.init()
        due = [horo.rank() == 0]
        class Interrupted(torch.optim.SGD):
            def step(self, closure=None):
                if due.pop() if due else False:
                    raise KeyboardInterrupt
                return super().step(closure)
        model = torch.nn.Linear(3, 2)
        horo.broadcast_parameters(model.state_dict(), 0)
        optimizer = Interrupted(model.parameters(), lr=0.1)
        optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
        for number in range(3):
            model(torch.ones(1, 3)).sum().mul(horo.rank() + 1 + number).backward()
            try:
                optimizer.step()
                assert number or horo.rank() == 1
            except KeyboardInterrupt:
                assert number == 0 and horo.rank() == 0
                {again}
            assert number or model.bias.grad.tolist() == [1.5] * 2, model.bias.grad
            optimizer.zero_grad()
        everybodys = horo.allgather(model.bias.detach().reshape(1, -1))
        assert {again!r} == "pass" or everybodys[0].equal(everybodys[1]), everybodys
        print("done", flush=True)
        """,
    )
    assert done.code == 0 and done.output.count("done") == 2, done.output
    assert "synchronizes again" not in done.output, done.output


INTERRUPTED_LINES = """
    import itertools, sys, torch
    import horo.torch as horo
    horo.init()
    steps = 0
    class Counting(torch.optim.SGD):
        def step(self, closure=None):
            global steps
            steps += 1
            return super().step(closure)
    def interrupt_at(number):
        lines = itertools.count()
        def trace(frame, event, _):
            if "/horo/" not in frame.f_code.co_filename:
                return None
            if event == "line" and next(lines) == number:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace
        sys.settrace(trace)
    model = torch.nn.Linear(3, 2)
    horo.broadcast_parameters(model.state_dict(), 0)
    optimizer = Counting(model.parameters(), lr=0.001)
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters(), OPTIONS)
    for turn in itertools.count():
        number, gradients = divmod(turn, 2)  # each line without gradients on rank 0, then with
        before, interrupted, computed = steps, False, gradients
        touched = gradients and touched
        torch.set_grad_enabled(True)  # an interruption may have left it off
        loss = model(torch.ones(1, 3)).sum().mul(horo.rank() + 1 + number)
        if horo.rank() == 0:
            interrupt_at(number)
        try:
            if gradients or horo.rank():
                loss.backward()
            optimizer.step()
        except KeyboardInterrupt:
            interrupted = True
            computed = model.bias.grad is not None
        sys.settrace(None)
        touched = touched or interrupted
        if interrupted and steps == before:
            optimizer.step()
        found = horo.allgather(model.bias.grad.reshape(1, -1))
        assert found[0].equal(found[1]), (number, found)
        computed = horo.broadcast_object(computed, 0)
        wanted = number + 1.5 if gradients and computed else number / 2 + 1
        assert found[0].tolist() == [wanted] * 2, (number, found)
        optimizer.zero_grad()
        if not horo.broadcast_object(touched or not gradients, 0):
            break
    assert number > 20
    print("done", flush=True)
"""


@pytest.mark.parametrize("options", ("", "num_groups=1, compression=horo.Compression.fp16"))
def test_interrupt_at_every_line_of_a_step(options):
    """One rank is interrupted at the first line of backward and step(), then at the second, and so on,
    and calls step() again. Its gradients always equal those of the other rank."""
    done = run_code(2, INTERRUPTED_LINES.replace("OPTIONS", options))
    assert done.code == 0 and done.output.count("done") == 2, done.output


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
    """A kernel sends SIGINT to the process alone. The ranks end, and the next cell runs."""
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

