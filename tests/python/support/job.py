# SPDX-License-Identifier: Apache-2.0
"""Starts jobs with the real `horo run` of the build tree that HORO_TEST_BIN names."""

import json
import os
import random
import re
import secrets
import signal
import socket
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
HORO = os.path.join(os.environ.get("HORO_TEST_BIN", ""), "horo")
LIMIT_S = 300


def free_port():
    """A TCP port of this machine on which nothing listens, for a rank 0 that listens later. It lies below the range from which
    the kernel gives ports to the connections of other programs, which could take it meanwhile."""
    while True:
        port = random.randrange(10000, 32768)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Finished:
    """A job that has ended: exit code and all output."""

    def __init__(self, code, output):
        self.code = code
        self.output = output


def run(ranks, arguments, limit=LIMIT_S, options=(), **environment):
    """Runs `horo run -np RANKS OPTIONS python ARGUMENTS`; fails the test when it does not end in time."""
    command = [HORO, "run", "-np", str(ranks), *options, sys.executable, *arguments]
    process = subprocess.Popen(
        command,
        # Threads of several ranks would compete for the cores.
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, _ = process.communicate()
        raise AssertionError(f"{' '.join(command)} did not end in {limit} s:\n{output}") from None
    return Finished(process.returncode, output)


def run_code(ranks, code):
    """Like run, for a program given as text."""
    return run(ranks, ["-c", textwrap.dedent(code)])


def run_alone(code, **environment):
    """Runs a program, given as text, in one process without a launcher."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    return Finished(done.returncode, done.stdout)


def run_on_two_hosts(code, **environment):
    """Runs a program, given as text, as the two ranks of a job that take each other for ranks on other
    hosts. Returns the Finished of each rank."""
    port, secret = free_port(), secrets.token_hex(32)
    ranks = []
    for rank in range(2):
        place = {
            "HORO_RANK": str(rank),
            "HORO_SIZE": "2",
            "HORO_LOCAL_RANK": "0",
            "HORO_LOCAL_SIZE": "1",
            "HORO_HOST_KEY": f"host {rank}",
            "HORO_RENDEZVOUS": f"127.0.0.1:{port}",
            "HORO_SECRET": secret,
        }
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(code)],
                env={**os.environ, "OMP_NUM_THREADS": "1", **place, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        outputs = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return [Finished(rank.returncode, output) for rank, output in zip(ranks, outputs)]


def interrupt(ranks, arguments, **environment):
    """Starts a job whose ranks print "runs <process id>" when they are ready, and interrupts it then, as
    Ctrl-C does. Fails the test when it does not end, or a rank stays."""
    process = subprocess.Popen(
        [HORO, "run", "-np", str(ranks), sys.executable, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    pids, lines = set(), []
    try:
        for line in process.stdout:
            lines.append(line)
            pids.update(int(pid) for pid in re.findall(r"\bruns (\d+)", line))
            if len(pids) == ranks:
                break
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    output = "".join(lines) + rest
    assert len(pids) == ranks, output
    left = [pid for pid in pids if _is_alive(pid)]
    assert not left, f"ranks {left} stay: {output}"
    return Finished(process.returncode, output)


def _is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(") ")[2][:1] not in "ZX"
    except OSError:
        return False


class Checks:
    """The results of one file's checks after a job has run them."""

    def __init__(self, path, ranks, directory):
        # A small arena, so that a test notices memory that is not freed.
        program = [os.path.join(HERE, "checks.py"), path, str(directory)]
        self._job = run(ranks, program, HORO_ARENA_SIZE="256MiB")
        self._passed = []
        for rank in range(ranks):
            report = os.path.join(str(directory), f"{rank}.json")
            passed = []
            if os.path.exists(report):
                with open(report) as file:
                    passed = json.load(file)
            self._passed.append(set(passed))

    def require(self, name):
        """Fails unless all ranks passed the check."""
        without = [rank for rank, passed in enumerate(self._passed) if name not in passed]
        assert not without, f"{name}: not passed on ranks {without}\n{self._job.output}"

    def require_clean_end(self):
        assert self._job.code == 0, self._job.output
