# SPDX-License-Identifier: Apache-2.0
"""Runs programs that start processes of their own, and leaves none of them behind."""

import os
import secrets
import select
import signal
import subprocess
import tempfile
import time
import typing

TAG = "HORO_BENCH_RUN"


class Ended(typing.NamedTuple):
    code: typing.Optional[int]  # None: still there at the time limit
    seconds: float
    output: str  # its last lines, standard output and error together


def run(command, timeout, env=None):
    """Runs `command` to its end, or kills it after `timeout` seconds, with all its descendants."""
    tag = secrets.token_hex(8)
    with tempfile.TemporaryFile() as output:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   env=tagged(env, tag))
        ended = wait_for_end(process, timeout)
        seconds = time.monotonic() - begin
        code = process.wait() if ended else None
        end_all(tag)
        process.wait()
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - 4000))
        return Ended(code, seconds, output.read().decode(errors="replace").strip())


def wait_for_end(process, timeout):
    """Whether it ended in time. Popen.wait(timeout) looks only every so often, up to 50 ms late."""
    descriptor = os.pidfd_open(process.pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(1000 * timeout))
    finally:
        os.close(descriptor)


def tagged(env, tag):
    return dict(os.environ if env is None else env, **{TAG: tag})


def read_proc(pid, name):
    """A file of /proc/<pid>, empty if the process is gone."""
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as file:
            return file.read()
    except OSError:
        return b""


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def alive(pid):
    """False for a zombie too."""
    stat = read_proc(pid, "stat")
    return bool(stat) and stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def with_tag(tag):
    """Processes that inherited this run's tag, whatever their parent or session is by now."""
    mark = ("%s=%s" % (TAG, tag)).encode()
    return [pid for pid in pids() if mark in read_proc(pid, "environ").split(b"\0") and alive(pid)]


def end_all(tag):
    """Kills what is left of a run; says how many processes that were."""
    killed = 0
    while True:
        left = with_tag(tag)
        if not left:
            return killed
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        time.sleep(0.002)


def status_field(pid, field):
    """A number of /proc/<pid>/status, 0 if the process is gone."""
    for line in read_proc(pid, "status").splitlines():
        if line.startswith(field.encode() + b":"):
            return int(line.split()[1])
    return 0
