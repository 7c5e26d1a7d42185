# SPDX-License-Identifier: Apache-2.0
"""The contenders of bench/allreduce: how each is started, or why it cannot be."""

import functools
import os
import shutil
import subprocess
import sys
import typing

from benchlib import spawner
from benchlib.arguments import ROOT

TORCH_PROGRAM = os.path.join(ROOT, "bench", "torch_allreduce.py")


class Missing(Exception):
    """A contender is missing on this machine; the message gives the reason."""


class Setting(typing.NamedTuple):
    build: str  # build tree
    ranks: int


class Task(typing.NamedTuple):
    cases: str  # file of workloads
    out: str  # file that rank 0 appends its rows to
    seconds: float  # per case

    def arguments(self):
        return ["--cases", self.cases, "--out", self.out, "--seconds", str(self.seconds)]


class Contender(typing.NamedTuple):
    who: str
    launcher: typing.Callable  # Setting -> command in front of the program; raises Missing
    program: typing.Callable  # Setting -> command of one rank; raises Missing
    fuses: bool = False  # sums ResNet-50's gradients as one tensor with the same bytes

    def command(self, setting, task):
        return self.launcher(setting) + self.program(setting) + task.arguments()


def built(setting, name):
    path = os.path.join(setting.build, "bin", name)
    if not os.access(path, os.X_OK):
        raise Missing("%s is not built: cmake --build %s" % (name, setting.build))
    return path


def installed(name, package):
    path = shutil.which(name)
    if not path:
        raise Missing("no %s: apt-get install %s" % (name, package))
    return path


@functools.lru_cache(maxsize=None)
def imports(python, module):
    return subprocess.run([python, "-c", "import " + module], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def torch_python():
    """The Python whose torch all contenders use: HORO_BENCH_PYTHON, Debian's, or the one that runs this script."""
    candidates = [os.environ.get("HORO_BENCH_PYTHON"), "/usr/bin/python3", sys.executable]
    for python in filter(None, candidates):
        if os.access(python, os.X_OK) and imports(python, "torch"):
            return python
    raise Missing("no torch: apt-get install python3-torch")


def horovod_directory():
    peers = os.environ.get("HORO_PEERS") or os.path.join(ROOT, "build", "peers")
    path = os.path.join(peers, "horovod", "bin")
    if not os.access(os.path.join(path, "horovodrun"), os.X_OK):
        raise Missing("no Horovod: scripts/packages --peers")
    return path


def no_launcher(_setting):
    return []


def horo_run(setting):
    horo = built(setting, "horo")
    built(setting, "horo-run")
    return [horo, "run", "-np", str(setting.ranks)]


def open_mpi(setting):
    return [installed("mpirun.openmpi", "openmpi-bin"), "--oversubscribe", "-np", str(setting.ranks)]


def open_mpi_tuned(setting):
    """The segmented ring of coll_tuned in pieces of 128 KiB, its best setting for large sums."""
    options = {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_allreduce_algorithm": 5,
               "coll_tuned_allreduce_algorithm_segmentsize": 128 << 10}
    command = open_mpi(setting)
    for key, value in options.items():
        command += ["--mca", key, str(value)]
    return command


def mpich(setting):
    return [installed("mpiexec.hydra", "mpich"), "-n", str(setting.ranks)]


def spawn(setting):
    torch_python()
    return [sys.executable, spawner.__file__, str(setting.ranks)]


def horovodrun(kind, *options):
    def launcher(setting):
        return [os.path.join(horovod_directory(), "horovodrun"), "-np", str(setting.ranks), kind, *options]

    return launcher


def bench_program(name, *arguments):
    return lambda setting: [built(setting, name), *arguments]


def horo_torch(setting):
    if not os.path.isdir(os.path.join(setting.build, "python", "horo")):
        raise Missing("no Python package in %s/python" % setting.build)
    return [torch_python(), TORCH_PROGRAM, "--backend", "horo"]


def horo_torch_ctypes(setting):
    return ["env", "HORO_CTYPES=1", *horo_torch(setting)]


def torch_gloo(_setting):
    return [torch_python(), TORCH_PROGRAM, "--backend", "torch"]


def horovod(_setting):
    return [os.path.join(horovod_directory(), "python"), TORCH_PROGRAM, "--backend", "horovod"]


def gloo(setting):
    return [built(setting, "bench_gloo"), "--ranks", str(setting.ranks)]


# `limit` comes first. bench/allreduce runs it itself, because its program cannot read case files.
LIMIT = "limit"
CONTENDERS = (
    Contender("horo-c", horo_run, bench_program("bench_horo")),
    Contender("horo-c-alloc", horo_run, bench_program("bench_horo", "--memory", "shared")),
    Contender("horo-torch", horo_run, horo_torch),
    Contender("horo-torch-ctypes", horo_run, horo_torch_ctypes),
    Contender("openmpi", open_mpi, bench_program("bench_openmpi"), fuses=True),
    Contender("openmpi-tuned", open_mpi_tuned, bench_program("bench_openmpi"), fuses=True),
    Contender("mpich", mpich, bench_program("bench_mpich"), fuses=True),
    Contender("gloo", no_launcher, gloo, fuses=True),
    Contender("torch-gloo", spawn, torch_gloo),
    Contender("horovod-gloo", horovodrun("--gloo"), horovod),
    Contender("horovod-mpi", horovodrun("--mpi", "--mpi-args=--oversubscribe"), horovod),
)


def environment(setting):
    """The environment of every contender: one compute thread per rank, loopback, and permission to run as root."""
    path = [os.path.join(setting.build, "python")]
    if os.environ.get("PYTHONPATH"):
        path.append(os.environ["PYTHONPATH"])
    more = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PYTHONPATH": os.pathsep.join(path)}
    try:
        more["PATH"] = horovod_directory() + os.pathsep + os.environ.get("PATH", os.defpath)
    except Missing:
        pass
    return dict(os.environ, **more)
