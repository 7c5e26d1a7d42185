# SPDX-License-Identifier: Apache-2.0
"""The extension module gives the same results and errors as ctypes, leaks nothing, lets other threads run
while it waits, and serves every Python."""

import inspect
import os
import pickle
import shutil
import subprocess
import sys

import pytest

import job
from horo import _extension, _handles

HERE = os.path.dirname(os.path.abspath(__file__))
BESIDE = os.path.join(os.path.dirname(os.environ.get("HORO_TEST_LIBRARY", "")), "horo", _extension.FILE)
built = pytest.mark.skipif(not os.path.exists(BESIDE), reason="this build has no extension module")
THERE = "there is no " if not os.path.exists(BESIDE) else "module"


def seen(tmp_path, name, file="both_ways.py", **environment):
    """Runs a program of support/ on two ranks. Returns what the ranks saw, and how each called libhoro."""
    folder = tmp_path / name
    folder.mkdir()
    program = os.path.join(HERE, "support", file)
    done = job.run(2, [program, str(folder)], HORO_CACHE_CAPACITY="32", **environment)
    assert done.code == 0, done.output
    texts = [(folder / rank).read_text().splitlines() for rank in ("1", "2")]
    return [text[1:] for text in texts], [text[0] for text in texts]


def test_results_and_errors_are_those_of_ctypes(tmp_path):
    pytest.importorskip("torch")
    by_module, used = seen(tmp_path, "module", HORO_CTYPES="0")
    by_ctypes, unused = seen(tmp_path, "ctypes", HORO_CTYPES="1")
    assert all(one.startswith(THERE) for one in used), used
    assert unused == ["HORO_CTYPES is set"] * 2
    for rank in (0, 1):
        assert len(by_module[rank]) > 200
        assert by_module[rank] == by_ctypes[rank]
        assert "references: 6 of 6 counts stay" in by_module[rank]


def test_arrays_and_capsules_are_read_as_by_ctypes(tmp_path):
    by_module, used = seen(tmp_path, "module", "both_ways_arrays.py", HORO_CTYPES="0")
    by_ctypes, unused = seen(tmp_path, "ctypes", "both_ways_arrays.py", HORO_CTYPES="1")
    assert all(one.startswith(THERE) for one in used), used
    if THERE == "module":
        assert used == ["module; ctypes (0, 0, 0)"] * 2
    assert all(one.startswith("HORO_CTYPES is set; ctypes ") and "0" not in one.rpartition("ctypes ")[2] for one in unused), unused
    for rank in (0, 1):
        assert len(by_module[rank]) > 300
        assert by_module[rank] == by_ctypes[rank]
        assert "references: 5 of 5 counts stay" in by_module[rank]


LEAKS = """
    import horo.torch as horo
    import torch
    horo.init()
    tensor, several = torch.ones(8), [torch.ones(2) for _ in range(20)]

    def pages():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    def refused(function, kind):
        try:
            function()
            raise SystemExit("not refused")
        except kind:
            pass

    def usual():
        horo.synchronize(horo.allreduce_async_(tensor, name="x", op=horo.Sum))

    def other():
        horo.synchronize(horo.allreduce_async(tensor, op=horo.Sum))
        horo.grouped_allreduce_(several, name="g", op=horo.Sum)

    def wrong():
        refused(lambda: horo.allreduce_async_(tensor, name="b", op=9), ValueError)
        refused(lambda: horo.allreduce_async_(tensor, name="z" + chr(0)), ValueError)
        refused(lambda: horo.allreduce_async_(tensor > 0, name="bool", op=horo.Sum), ValueError)
        refused(lambda: horo.synchronize([]), TypeError)
        refused(lambda: horo.synchronize(), TypeError)
        horo.synchronize(7)

    for function, count in ((usual, 1000000), (other, 20000), (wrong, 10000)):
        for _ in range(count // 10):
            function()
        before = pages()
        for _ in range(count):
            function()
        assert pages() - before < 512, (function, pages() - before)
    print("nothing grows")
"""


@built
def test_a_million_calls_take_no_memory():
    pytest.importorskip("torch")
    done = job.run_alone(LEAKS)
    assert done.code == 0 and "nothing grows" in done.output, done.output


THREADS = """
    import threading
    import horo.torch as horo
    import torch
    horo.init()
    ranks, wrong = horo.size(), []

    def many(number):
        tensors = [torch.zeros(i % 5 + 1) for i in range(20)]
        for step in range(100):
            for tensor in tensors:
                tensor.fill_(number + step)
            handles = [
                horo.allreduce_async_(tensor, name=f"{number}.{i}", op=horo.Sum)
                for i, tensor in enumerate(tensors)
            ]
            for handle, tensor in zip(handles, tensors):
                if horo.synchronize(handle) is not tensor or tensor[0] != ranks * (number + step):
                    wrong.append((number, step, tensor))

    threads = [threading.Thread(target=many, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]

    # While one thread waits, another one runs Python: the awaited operation needs it.
    if horo.rank() == 0:
        waiter = threading.Thread(target=lambda: horo.allreduce_(torch.ones(2), name="late"))
        waiter.start()
        horo.allreduce_(torch.ones(2), name="first")
        waiter.join()
    else:
        horo.allreduce_(torch.ones(2), name="first")
        horo.allreduce_(torch.ones(2), name="late")
    print("rank", horo.rank(), "done")
"""


def test_threads_submit_and_wait_at_the_same_time():
    pytest.importorskip("torch")
    done = job.run_code(2, THREADS)
    assert done.code == 0, done.output
    assert "rank 0 done" in done.output and "rank 1 done" in done.output, done.output


# Without torch and numpy, which other Pythons may not have.
PLAIN = """
    import ctypes
    import pickle
    import sys
    from horo import _extension, _handles, _life, _sets
    from horo._names import declare
    assert not _extension.absence, _extension.absence
    _life.init()
    record = _sets.WORLD.record(0, "x")
    declare(record, 0, "float64", (3,), op=1)
    data = (ctypes.c_double * 3)(1, 2, 3)
    address = ctypes.addressof(data)
    for _ in range(100):
        handle = _handles.submit(record, address, address)
        assert record.handle == record.slot.value == handle
        _handles.PENDING[handle] = (data, data, None)
        assert _handles.synchronize(handle) is data and _handles.synchronize(handle) is None
        (handle,) = _handles.submit_all([_handles.Part(record, address, address)])
        assert _handles.wait(handle) == 0
        _handles.take(handle)
    assert list(data) == [1, 2, 3] and not _handles.PENDING
    assert record.name == b"allreduce.x" and record.signature is None and record.rows is None
    _life.shutdown()
    print("works in", sys.version.split()[0])
"""


def pythons():
    """Every CPython from 3.9 on that can be found here."""
    found = {os.path.realpath(sys.executable): sys.executable}
    versions = os.path.expanduser("~/.pyenv/versions")
    folders = sorted(os.listdir(versions)) if os.path.isdir(versions) else []
    names = [shutil.which(f"python3.{minor}") for minor in range(9, 20)]
    names += [os.path.join(versions, folder, "bin", "python3") for folder in folders]
    for python in names:
        if python and os.path.exists(python):
            asked = "import sys; print(sys.executable, sys.version_info[:2] >= (3, 9))"
            done = subprocess.run([python, "-c", asked], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if done.returncode == 0 and done.stdout.split()[1] == "True":
                found.setdefault(os.path.realpath(done.stdout.split()[0]), python)
    return list(found.values())


@built
def test_one_module_serves_every_python(monkeypatch):
    monkeypatch.delenv("HORO_CTYPES", raising=False)
    for python in pythons():
        monkeypatch.setattr(sys, "executable", python)
        done = job.run_alone(PLAIN)
        assert done.code == 0 and "works in" in done.output, (python, done.output)


@built
def test_a_module_of_another_release_is_not_used(tmp_path):
    library = tmp_path / "libhoro.so"
    shutil.copy(os.environ["HORO_TEST_LIBRARY"], library)
    (tmp_path / "horo").mkdir()
    with open(BESIDE, "rb") as file:
        module = file.read()
    code = "from horo import _extension; print(_extension.module, _extension.absence)"
    for body, words in ((module, "<module"), (None, "None there is no"), (b"text", "None")):
        place = tmp_path / "horo" / _extension.FILE
        place.unlink(missing_ok=True)
        if body is not None:
            place.write_bytes(body)
        done = job.run_alone(code, HORO_LIBRARY=str(library), HORO_CTYPES="0")
        assert done.code == 0 and done.output.startswith(words), done.output


def test_synchronize_shows_its_parameter():
    """Help and editors show the same with the module and without it."""
    assert list(inspect.signature(_handles.synchronize).parameters) == ["handle"]
    assert "returns its result" in inspect.getdoc(_handles.synchronize)


def test_synchronize_can_be_pickled():
    """A program that a peer unpickles may hold it, and the peer may have no extension module."""
    text = pickle.dumps(_handles.synchronize)
    assert b"_fastpath" not in text and pickle.loads(text) is _handles.synchronize
