# SPDX-License-Identifier: Apache-2.0
"""Programs written for Horovod run unchanged."""

import os
import subprocess
import sys

import pytest

import job

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "horovod", "train.py")


def launched(command, **environment):
    done = subprocess.run(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=job.LIMIT_S,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "options",
    (
        ["--batches-per-allreduce", "2", "--fp16-allreduce", "--gradient-predivide-factor", "2"],
        ["--use-adasum", "--epochs", "6"],
    ),
)
def test_training_under_horo_run(options):
    # Without PYTHONPATH: what --horovod gives is enough.
    code, output = launched(
        [job.HORO, "run", "--horovod", "-np", "2", sys.executable, TRAIN, *options], PYTHONPATH=""
    )
    assert code == 0 and output.count("OK size 2 SGD") == 1, output


def test_training_under_horovodrun():
    horovodrun = os.path.join(os.environ["HORO_TEST_BIN"], "horovodrun")
    code, output = launched([horovodrun, "-np", "2", sys.executable, TRAIN], PYTHONPATH="")
    assert code == 0 and "[0]<stdout>:OK size 2 SGD" in output, output


def test_training_by_the_module():
    done = job.run(1, ["-m", "horo.compat", TRAIN, "--epochs", "8"])
    assert done.code == 0 and "OK size 1 SGD" in done.output, done.output


def test_module_gives_arguments_and_children(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import subprocess, sys\n"
        "import beside, horovod\n"
        "assert __name__ == '__main__' and sys.argv[1:] == ['--one', 'two'], sys.argv\n"
        "child = 'import horovod.torch as h, horo.torch as o; assert h.allreduce is o.allreduce'\n"
        "subprocess.run([sys.executable, '-c', child], check=True)\n"
        "print('fine')\n"
    )
    (tmp_path / "beside.py").write_text("")
    code, output = launched([sys.executable, "-m", "horo.compat", str(script), "--one", "two"])
    assert code == 0 and output.strip() == "fine", output
    code, output = launched(
        [sys.executable, "-m", "horo.compat", "-m", "beside"], PYTHONPATH=os.pathsep.join(
            [os.environ["PYTHONPATH"], str(tmp_path)]
        )
    )
    assert code == 0, output


def test_what_is_not_there_says_so():
    done = job.run_alone(
        """
        from horo import compat
        compat.install()
        import horovod
        for name in ("tensorflow", "spark", "torch.elastic"):
            try:
                __import__("horovod." + name)
            except ImportError as error:
                assert f"horovod.{name} is not part of Horo" in str(error), error
            else:
                raise SystemExit(name)
        from horovod.common.process_sets import global_process_set
        from horovod.data.data_loader_base import AsyncDataLoaderMixin
        from horovod.runner import run
        """
    )
    assert done.code == 0, done.output


def test_usage():
    code, output = launched([sys.executable, "-m", "horo.compat"])
    assert code == 1 and "usage:" in output
