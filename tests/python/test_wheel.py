# SPDX-License-Identifier: Apache-2.0
"""The wheel holds all that a machine needs. The tests build it from the build tree, look into it,
install it into a fresh environment and use it there."""

import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import job

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Libraries that every Linux of the wheel's tag has, as in the list of auditwheel.
SYSTEM = r"(libc|libm|libdl|libpthread|librt|libz|libstdc\+\+|libgcc_s)\.so\.\d+|ld-linux-[-\w]+\.so\.\d+"
CARRIED = "horo/horo/carried"
LIMIT_S = 600


def execute(*command, **options):
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        **options,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The path of the wheel of this build."""
    pytest.importorskip("setuptools")
    pytest.importorskip("pip")
    if not shutil.which("cmake"):
        pytest.skip("no cmake")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    shutil.copy(os.path.join(SOURCES, "pyproject.toml"), source)
    shutil.copytree(
        os.path.join(SOURCES, "bindings", "python"),
        source / "bindings" / "python",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
    )
    made = execute(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--no-index", "--wheel-dir", str(folder), str(source)),
        env=dict(os.environ, HORO_LIBRARY=os.environ["HORO_TEST_LIBRARY"], CXX="false"),
    )
    if "No module named 'wheel'" in made.stdout:
        pytest.skip("this Python has no wheel")
    assert made.returncode == 0, made.stdout
    (path,) = glob.glob(str(folder / "*.whl"))
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The folder of a virtual environment with the wheel and numpy, without the build tree."""
    folder = tmp_path_factory.mktemp("fresh") / "environment"
    made = execute(
        sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", str(folder)
    )
    if made.returncode:
        pytest.skip(f"this Python makes no environment: {made.stdout.splitlines()[-1:]}")
    python = str(folder / "bin" / "python3")
    installed = execute(
        *(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel),
        env=clean(),
    )
    assert installed.returncode == 0, installed.stdout
    return folder


def clean():
    """Environment variables without the build tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HORO")}
    kept.pop("PYTHONPATH", None)
    return dict(kept, OMP_NUM_THREADS="1")


def test_one_tag_for_every_python(wheel):
    name = os.path.basename(wheel)
    assert re.fullmatch(r"horo-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl", name), name
    names = zipfile.ZipFile(wheel).namelist()
    assert "horo/py.typed" in names and "horo/libhoro.so" in names
    assert any(one.endswith("data/bin/horo-run") for one in names), names
    modules = os.path.join(os.path.dirname(os.environ["HORO_TEST_LIBRARY"]), "horo")
    for module in os.listdir(modules):  # the backends, and the extension module of Python
        assert f"horo/horo/{module}" in names, names


def test_it_needs_the_c_library_only(wheel, tmp_path):
    """And the libraries inside, except for the MPI backends, which use the ranks' MPI."""
    if not shutil.which("readelf"):
        pytest.skip("no readelf")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    looked_at = 0
    for folder, _, files in os.walk(tmp_path):
        for path in (os.path.join(folder, name) for name in files):
            with open(path, "rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            words = execute("readelf", "-dW", path).stdout
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", words)
            if re.search(r"horo-backend-(openmpi|mpich)", path):
                needed = [name for name in needed if not re.fullmatch(r"lib(mpi|mpich)\.so\.\d+", name)]
            strange = [name for name in needed if not re.fullmatch(SYSTEM, name)]
            strange = [name for name in strange if not (tmp_path / CARRIED / name).exists()]
            if path.endswith("horo-tensorflow.so"):
                strange.remove("libhoro.so.0")  # horo has loaded it, under this name
            assert not strange, (path, strange)
            # An empty part of a search path would mean the working directory.
            for places in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", words):
                assert all(place.startswith("$ORIGIN") for place in places.split(":")), (path, places)
            looked_at += 1
    assert looked_at >= 8


def test_carried_libraries_come_with_their_terms(wheel):
    with zipfile.ZipFile(wheel) as whole:
        inside = [name for name in whole.namelist() if name.startswith(CARRIED)]
        libraries = [name for name in inside if not name.endswith(".copyright")]
        for name in libraries:
            text = whole.read(name + ".copyright").decode()
            assert "opyright" in text and "edistribut" in text and len(text) > 1000, name
        if f"{CARRIED}/libnl-3.so.200" in libraries:
            text = whole.read(f"{CARRIED}/libnl-3.so.200.copyright").decode()
            assert "GNU LESSER GENERAL PUBLIC LICENSE" in text  # the text itself, not a reference to it
    assert not has_gloo() or f"{CARRIED}/libgloo.so.0" in libraries, inside


def test_code_that_is_compiled_in_comes_with_its_terms(wheel):
    if not os.path.exists("/usr/share/doc/libfmt-dev/copyright"):
        pytest.skip("no Debian, whose packages have the terms")
    with zipfile.ZipFile(wheel) as whole:
        text = whole.read("horo/NOTICES").decode()
    for words in ("Boost Software License", "Victor Zverovich", "Henry Schreiner", "Frank Denis", "Jesse Beder"):
        assert words in text, words


def has_gloo():
    """Whether this build has the backend and this machine has the licence of its library."""
    beside = os.path.join(os.path.dirname(os.environ["HORO_TEST_LIBRARY"]), "horo")
    return os.path.exists(os.path.join(beside, "horo-backend-gloo.so")) and any(
        os.path.exists(f"/usr/share/doc/{package}/copyright") for package in ("libgloo0", "libgloo-dev")
    )


def test_auditwheel_agrees(wheel, tmp_path):
    if execute(sys.executable, "-c", "import auditwheel").returncode:
        pytest.skip("no auditwheel: pip install auditwheel")
    # Without the MPI backends: auditwheel would require an MPI inside.
    path, theirs = tmp_path / os.path.basename(wheel), b"horo-backend-(openmpi|mpich)"
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(path, "w") as part:
        for name in whole.namelist():
            body = whole.read(name)
            if name.endswith("RECORD"):
                body = b"".join(line for line in body.splitlines(True) if not re.search(theirs, line))
            if not re.search(theirs, name.encode()):
                part.writestr(name, body)
    shown = execute(sys.executable, "-m", "auditwheel", "show", str(path))
    assert shown.returncode == 0 and "manylinux_2_" in shown.stdout, shown.stdout


SCRIPT = """
import os, sys
import numpy
import horo
import horo.numpy as hvd
from horo import _native, _built, _extension
assert (_extension.module is None) != os.path.exists(_extension.path()), _extension.absence
hvd.init()
total = hvd.allreduce(numpy.ones(1000), op=hvd.Sum)
assert total.tolist() == [2.0] * 1000
here = os.path.dirname(horo.__file__)
assert here.startswith(sys.prefix) and _native.path == os.path.join(here, "libhoro.so"), _native.path
print(f"rank {hvd.rank()} of {hvd.size()}", _built.gloo_built())
"""


def test_installed_into_an_empty_folder(environment, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    horo, python = (str(environment / "bin" / name) for name in ("horo", "python3"))
    options = {"cwd": tmp_path, "env": clean()}
    done = execute(horo, "run", "-np", "2", python, "script.py", **options)
    assert done.returncode == 0, done.stdout
    assert "rank 0 of 2" in done.stdout and "rank 1 of 2" in done.stdout, done.stdout

    names = "import horovod, horo; assert horovod.run is horo.run; print(horovod.__version__)"
    for command in ([horo, "run", "--horovod"], [str(environment / "bin" / "horovodrun")]):
        done = execute(*command, "-np", "2", python, "-c", names, **options)
        assert done.returncode == 0, done.stdout

    code = "import horo; print(horo.run(abs, args=(-3,), num_proc=2))"
    done = execute(python, "-c", code, **options)
    assert done.returncode == 0 and done.stdout.strip().endswith("[3, 3]"), done.stdout

    done = execute(horo, "check-build", **options)
    assert done.returncode == 0, done.stdout
    gloo = [line for line in done.stdout.splitlines() if "gloo" in line.lower()]
    built = os.path.dirname(os.environ["HORO_TEST_LIBRARY"])
    if os.path.exists(os.path.join(built, "horo", "horo-backend-gloo.so")):
        assert gloo and "cannot" not in gloo[0] and "not found" not in gloo[0], gloo


HOROVOD = """
import sys
import numpy
import horovod
import horo
from horo import compat
assert horovod.__version__ == "0.28.1" and horovod.run is horo.run
assert compat.NAMES not in sys.path and horovod.__file__.startswith(compat.NAMES)
assert "horovod.torch" in sys.argv or "torch" not in sys.modules
if "horovod.torch" in sys.argv:
    import horovod.torch as hvd
    import torch
    ones = torch.ones
else:
    import horo.numpy as hvd
    ones = numpy.ones
hvd.init()
assert hvd.allreduce(ones(4), op=hvd.Sum).tolist() == [2.0] * 4
import horovod.runner.elastic.discovery
try:
    import horovod.spark
    raise SystemExit("there is no horovod.spark")
except ImportError as error:
    assert "horovod.spark is not part of Horo" in str(error), error
print(f"rank {hvd.rank()} of {hvd.size()}")
"""


@pytest.fixture(scope="module")
def with_horovod(environment, tmp_path_factory):
    """The environment with the wheel horo-horovod, too."""
    folder = tmp_path_factory.mktemp("horovod")
    source = folder / "source"
    shutil.copytree(os.path.join(SOURCES, "bindings", "horovod"), source)
    made = execute(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--no-index", "--wheel-dir", str(folder), str(source)),
    )
    assert made.returncode == 0, made.stdout
    (wheel,) = glob.glob(str(folder / "horo_horovod-*.whl"))
    python = str(environment / "bin" / "python3")
    # With its dependency, which must be satisfied: pip would ask an index otherwise.
    installed = execute(
        *(python, "-m", "pip", "install", "--quiet", "--no-index", wheel), env=clean()
    )
    assert installed.returncode == 0, installed.stdout
    return environment


def check_horovods_name(environment, launcher, folder, **more):
    """`import horovod` works under the launcher."""
    (folder / "script.py").write_text(HOROVOD)
    python = str(environment / "bin" / "python3")
    has_torch = execute(python, "-c", "import torch", env=clean()).returncode == 0
    command = [python, "script.py", *(["horovod.torch"] if has_torch else [])]
    done = execute(*launcher, *command, cwd=folder, env={**clean(), **more})
    assert done.returncode == 0, (launcher, done.stdout)
    assert "rank 0 of 2" in done.stdout and "rank 1 of 2" in done.stdout, done.stdout


def test_horovods_name_without_the_launcher(with_horovod, tmp_path):
    """With the wheel horo-horovod, `import horovod` needs neither `horo run` nor a variable."""
    launchers = [["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2"], ["mpiexec.hydra", "-n", "2"]]
    found = [launcher for launcher in launchers if shutil.which(launcher[0])]
    if not found:
        pytest.skip("no mpirun.openmpi and no mpiexec.hydra: scripts/packages --install test")
    for launcher in found:
        check_horovods_name(with_horovod, launcher, tmp_path)


def test_horovods_name_under_srun(with_horovod, tmp_path):
    """A real Slurm, which is started for this test."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    if os.getuid() != 0 or not all(shutil.which(one, path=path) for one in ("slurmctld", "munged")):
        pytest.skip("not root, or no Slurm: scripts/packages --install test")
    script = os.path.join(SOURCES, "tests", "standalone", "slurm_here.sh")
    folder = tmp_path / "slurm"
    try:
        up = execute("bash", script, "up", str(folder), "1")
        assert up.returncode == 0, up.stdout
        configuration = str(folder / "slurm.conf")
        check_horovods_name(with_horovod, ["srun", "-n", "2"], tmp_path, SLURM_CONF=configuration)
    finally:
        execute("bash", script, "down", str(folder))


BETWEEN_HOSTS = """
import os
import numpy
import horo.numpy as hvd
from horo import _native
hvd.init()
total = hvd.allreduce(numpy.ones(100000), op=hvd.Sum)
assert total.tolist() == [2.0] * 100000 and hvd.cross_size() == 2
lines = [line for line in open("/proc/self/maps") if "libgloo" in line or "hiredis" in line]
folder = os.path.join(os.path.dirname(_native.path), "horo", "carried")
assert lines and all(folder in line for line in lines), lines
print("over gloo")
"""


def test_gloo_works_when_the_system_has_none(environment, tmp_path):
    """Two ranks that believe to be on two hosts run without the system's Gloo."""
    if not has_gloo():
        pytest.skip("no Gloo in this wheel")
    names = ("libgloo", "libhiredis", "libibverbs", "libnl-3", "libnl-route-3")
    hidden = [
        os.path.realpath(path)
        for name in names
        for folder in ("/lib", "/usr/lib", "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu")
        for path in glob.glob(f"{folder}/{name}.so.*")
    ]
    hide = "".join(f"mount --bind /dev/null {path} && " for path in sorted(set(hidden)))
    probe = execute("unshare", "--mount", "sh", "-c", hide + "true")
    if probe.returncode:
        pytest.skip(f"cannot hide the system's Gloo here: {probe.stdout.strip()}")
    (tmp_path / "script.py").write_text(BETWEEN_HOSTS)
    python = str(environment / "bin" / "python3")
    common = dict(
        clean(), HORO_RENDEZVOUS=f"127.0.0.1:{job.free_port()}", HORO_SECRET="7e" * 32, WORLD_SIZE="2"
    )
    ranks = [
        subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", hide + f"exec {python} script.py"],
            env=dict(common, RANK=str(rank), HORO_HOST_KEY=f"host{rank}", HORO_CPU_OPERATIONS="gloo"),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    outputs = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert all("over gloo" in output for output in outputs), outputs


def test_the_package_works_without_the_tools(wheel, tmp_path):
    """As after pip install --target: it can be imported and run as one rank."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    done = job.run_alone(
        "import horo.numpy as h; h.init(); print(h.size(), h.__file__)", PYTHONPATH=str(tmp_path)
    )
    assert done.code == 0 and done.output.split() == ["1", str(tmp_path / "horo" / "numpy.py")]
