# SPDX-License-Identifier: Apache-2.0
"""Ranks that fail, die or are interrupted inside of TensorFlow and Keras leave nobody waiting."""

import os
import re
import signal
import subprocess
import sys

import job

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


def program(name):
    return os.path.join(PROGRAMS, name)


def test_a_gradient_that_fails_on_one_rank_ends_the_job():
    done = job.run(2, [program("gradient_fails.py")])
    assert done.code != 0
    assert "no gradient here" in done.output, done.output
    assert re.search("rank 0 was told: (PeerLostError|ShutDownError)", done.output), done.output
    assert "rank 1 on localhost failed first" in done.output, done.output


def test_a_fit_goes_on_after_a_rank_was_lost(tmp_path):
    options = ("--min-np", "1", "--slot-restarts", "9")
    done = job.run(2, [program("elastic_fit.py"), str(tmp_path)], options=options)
    assert done.code == 0 and os.path.exists(tmp_path / "died"), done.output
    ends = re.findall(r"done epoch 3 of size \d result (\S+)", done.output)
    assert ends and len(set(ends)) == 1, done.output


def test_ctrl_c_ends_a_fit():
    process = subprocess.Popen(
        [job.HORO, "run", "-np", "2", sys.executable, program("fit_for_ever.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        for line in process.stdout:
            if "fits" in line:
                break
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=job.LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 130, (process.returncode, rest)
