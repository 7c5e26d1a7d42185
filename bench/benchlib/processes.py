# SPDX-License-Identifier: Apache-2.0
"""Runs programs that start further processes, and leaves none of them behind."""

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
    code: typing.Optional[int]  # None: it still ran at the timeout
    seconds: float
    output: str  # its last lines, standard output and error together


def run(command, timeout, env=None):
    """Runs `command` until it ends, or kills it with all its descendants after `timeout` seconds."""
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
    """Whether the process ended in time. Popen.wait(timeout) polls, and may notice an end 50 ms late."""
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
    """A file of /proc/<pid>, empty if the process has ended."""
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as file:
            return file.read()
    except OSError:
        return b""


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def alive(pid):
    """False for a zombie, too."""
    stat = read_proc(pid, "stat")
    return bool(stat) and stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def with_tag(tag):
    """Processes that inherited the tag of this run, whatever their parent and session are now."""
    mark = ("%s=%s" % (TAG, tag)).encode()
    return [pid for pid in pids() if mark in read_proc(pid, "environ").split(b"\0") and alive(pid)]


def end_all(tag):
    """Kills the remaining processes of a run and returns their number."""
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
    """A number from /proc/<pid>/status, 0 if the process has ended."""
    for line in read_proc(pid, "status").splitlines():
        if line.startswith(field.encode() + b":"):
            return int(line.split()[1])
    return 0
