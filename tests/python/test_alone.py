# SPDX-License-Identifier: Apache-2.0
"""A process without a launcher: finding the library, one rank's life, fork and Ctrl-C."""

import os
import secrets
import shutil
import subprocess
import sys

import pytest

from job import free_port, run_alone

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def test_one_rank_without_a_launcher():
    done = run_alone(
        """
        import numpy
        import horo.numpy as horo
        for function in (horo.rank, horo.size, lambda: horo.allreduce(numpy.ones(1))):
            try:
                function()
                raise SystemExit("worked before init")
            except ValueError as error:
                assert "init" in str(error), error
        horo.init()
        horo.init()
        assert (horo.rank(), horo.size(), horo.local_rank()) == (0, 1, 0)
        assert horo.allreduce(numpy.full(3, 2.5)).tolist() == [2.5] * 3
        handle = horo.allreduce_async(numpy.ones(2))
        horo.shutdown()
        assert not horo.is_initialized()
        assert horo.synchronize(handle) is None
        horo.shutdown()
        horo.init()
        assert horo.allreduce(numpy.ones(2), name="again").sum() == 2
        """
    )
    assert done.code == 0, done.output



@pytest.mark.parametrize("hosts", ("aab", "abbccc", "aabb"))
def test_hosts_of_different_sizes(hosts):
    """When some hosts have more ranks than others, all ranks know it."""
    port = free_port()
    code = "import horo.numpy as h; h.init(); print(h.is_homogeneous()); h.barrier(); h.shutdown()"
    job = {
        **os.environ,
        "WORLD_SIZE": str(len(hosts)),
        "HORO_RENDEZVOUS": f"127.0.0.1:{port}",
        "HORO_SECRET": secrets.token_hex(32),
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**job, "RANK": str(rank), "HORO_HOST_KEY": host},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, host in enumerate(hosts)
    ]
    answers = {process.communicate(timeout=120)[0].strip() for process in ranks}
    assert answers == {str(hosts == "aabb")}


def test_shared_memory_outlives_its_session():
    done = run_alone(
        """
        import gc
        import numpy
        import horo.numpy as horo
        horo.init()
        old = horo.shared_empty(100_000)
        old[:] = 1
        horo.shutdown()
        horo.init()
        new = horo.shared_empty(100_000)
        new[:] = 7
        assert (old == 1).all()
        assert horo.allreduce(old, name="old").sum() == 100_000
        del old
        gc.collect()
        more = [horo.shared_empty(100_000) for _ in range(4)]
        for i in range(4):
            more[i][:] = 9
        assert (new == 7).all()
        mapped = lambda: sum("horo-board" in line for line in open("/proc/self/maps"))
        before = mapped()
        for _ in range(5):
            horo.shutdown()
            new = more = None
            gc.collect()
            horo.init()
            new = horo.shared_empty(100_000)
        assert mapped() == before, open("/proc/self/maps").read()
        """
    )
    assert done.code == 0, done.output


def test_import_loads_no_framework():
    done = run_alone(
        """
        import sys
        import horo, horo._job
        assert not {"torch", "numpy"} & set(sys.modules)
        """
    )
    assert done.code == 0, done.output


def copy_package(target):
    shutil.copytree(os.path.join(SOURCES, "bindings", "python", "horo"), str(target / "horo"))


def test_installed_package_finds_the_library_of_its_prefix(tmp_path):
    package, library = tmp_path / "lib" / "horo" / "python", tmp_path / "lib" / "libhoro.so"
    copy_package(package)
    library.symlink_to(os.environ["HORO_TEST_LIBRARY"])
    done = run_alone("import horo._native as n; print(n.path)", PYTHONPATH=str(package))
    assert done.output.strip() == str(library), done.output


@pytest.mark.parametrize("version", (None, "1.12.1+cpu"))
def test_missing_or_old_torch_is_refused(tmp_path, version):
    path = str(tmp_path) + os.pathsep + os.environ["PYTHONPATH"]
    hide = "import sys; sys.modules['torch'] = None\n" if version is None else ""
    if version:
        (tmp_path / "torch.py").write_text(f"__version__ = {version!r}")
    done = run_alone(hide + "import horo.torch", PYTHONPATH=path)
    last = done.output.strip().splitlines()[-1]
    assert done.code == 1 and "horo.torch needs PyTorch" in last and "1.13" in last, done.output
    assert (version or "pip install torch") in last, last


@pytest.mark.parametrize(
    "module, old, package, needs",
    (
        ("horo.mxnet", "1.8.0", ("mxnet",), "horo.mxnet needs MXNet 1.9"),
        ("horo.lightning", "1.9.5", ("lightning", "pytorch_lightning"), "horo.lightning needs Lightning 2"),
    ),
)
def test_a_missing_or_old_framework_is_refused(tmp_path, module, old, package, needs):
    hide = "import sys; sys.modules.update(dict.fromkeys(%r))\n" % (package,)
    if module == "horo.lightning":
        pytest.importorskip("torch")
    done = run_alone(hide + f"import {module}")
    assert done.code == 1 and needs in done.output and "pip install" in done.output, done.output
    for name in package:
        (tmp_path / f"{name}.py").write_text(f"__version__ = {old!r}")
    path = str(tmp_path) + os.pathsep + os.environ["PYTHONPATH"]
    done = run_alone(f"import {module}", PYTHONPATH=path)
    last = done.output.strip().splitlines()[-1]
    assert done.code == 1 and needs in last and f"this is {old}" in last.replace("lightning ", ""), done.output


def test_broken_torch_raises_its_own_error(tmp_path):
    (tmp_path / "torch.py").write_text("import what_torch_needs")
    path = str(tmp_path) + os.pathsep + os.environ["PYTHONPATH"]
    done = run_alone("import horo.torch", PYTHONPATH=path)
    assert done.code == 1 and "No module named 'what_torch_needs'" in done.output, done.output


def test_missing_library_names_every_path(tmp_path):
    copy_package(tmp_path / "python")
    done = run_alone("import horo._job", PYTHONPATH=str(tmp_path / "python"))
    assert done.code == 1
    assert "libhoro.so not found" in done.output and "HORO_LIBRARY" in done.output
    assert str(tmp_path / "lib" / "libhoro.so") in done.output
    done = run_alone("import horo._job", HORO_LIBRARY="/nowhere/libhoro.so")
    assert done.code == 1 and "tried /nowhere/libhoro.so" in done.output


def test_library_of_another_abi_is_refused():
    path = os.environ["HORO_TEST_OTHER_ABI"]
    done = run_alone("import horo._job", HORO_LIBRARY=path)
    assert done.code == 1
    last = done.output.strip().splitlines()[-1]
    for word in (path, "ABI 1", "ABI 4242", "9.9.9", os.path.join("python", "horo")):
        assert word in last, last


def test_another_library_is_refused():
    done = run_alone("import horo._job", HORO_LIBRARY="libc.so.6")
    assert done.code == 1 and "is not libhoro" in done.output


def test_forked_child_is_refused():
    done = run_alone(
        """
        import os
        import numpy
        import horo.numpy as horo
        from horo.errors import ForkedError
        horo.init()
        horo.allreduce(numpy.ones(1), name="x")
        child = os.fork()
        if child == 0:
            try:
                horo.allreduce(numpy.ones(1), name="x")
            except ForkedError:
                os._exit(7)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WEXITSTATUS(status) == 7, status
        assert horo.allreduce(numpy.ones(1), name="x")[0] == 1
        """
    )
    assert done.code == 0, done.output


def test_pip_installs_without_compiling(tmp_path):
    pytest.importorskip("setuptools")
    pytest.importorskip("pip")
    target = str(tmp_path / "installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--target", target]
    copy = str(tmp_path / "source")
    os.makedirs(os.path.join(copy, "bindings"))
    shutil.copy(os.path.join(SOURCES, "pyproject.toml"), copy)
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(
        os.path.join(SOURCES, "bindings", "python"),
        os.path.join(copy, "bindings", "python"),
        ignore=ignore,
    )
    environment = dict(os.environ, HORO_LIBRARY=os.environ["HORO_TEST_LIBRARY"], CXX="false")
    installed = subprocess.run(
        command + [copy],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if "No module named 'wheel'" in installed.stdout:
        pytest.skip("this Python has no wheel")
    assert installed.returncode == 0, installed.stdout
    code = (
        "from horo import _job, _life, _native; _life.init(); print(_native.path, _job.size())"
    )
    done = run_alone(code, PYTHONPATH=target)
    assert done.output.split() == [os.path.join(target, "horo", "libhoro.so"), "1"], done.output
    assert not os.path.exists(os.path.join(target, "wheel_build.py"))


def test_counters_are_a_dictionary():
    done = run_alone(
        """
        import numpy
        import horo.numpy as horo
        horo.init()
        for i in range(5):
            horo.allreduce(numpy.ones(4, "float32"), name="x")
        counters = horo.counters()
        assert counters["tensors"] == 5 and counters["bytes"] == 80, counters
        """
    )
    assert done.code == 0, done.output
