# SPDX-License-Identifier: Apache-2.0
"""Lets a rank wait for the end of another rank's process on this host.

A rank that fails leaves the job, and its process takes a while to end: torch needs a second for it on a busy
machine. A rank that exits because of that waits, so that the launcher sees the other process end first. Each
rank of `horo run` listens on a socket without a name in any file system until its process ends. It answers
nothing: a connection tells the process that listens.
"""

from __future__ import annotations

import hashlib
import os
import select
import socket
import struct
import time

_shown: list[int] = []  # the descriptor of this process's socket, which stays open until the process ends
_REAPED_S = 0.05  # the agent needs so long to notice an end


def _name(rank):
    """The socket's name; None without the launcher's number for the job on this host."""
    nonce = os.environ.get("HORO_BOARD_NONCE")
    if not nonce:
        return None
    return "\0horo.rank." + hashlib.sha256(f"presence {nonce}".encode()).hexdigest()[:32] + f".{rank}"


def _hide():
    while _shown:
        os.close(_shown.pop())


os.register_at_fork(after_in_child=_hide)  # a child may live longer than the rank


def show(rank):
    """From now on other ranks can wait for the end of this process, which is this rank."""
    _hide()
    name = _name(rank)
    if name is None:
        return
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(name)
        listener.listen(128)
    except OSError:  # another process has shown itself as this rank
        listener.close()
        return
    _shown.append(listener.detach())  # an open socket object would be a warning at the end of python -X dev


def await_ends(ranks, longest_s):
    """Waits until the processes of these ranks have ended, as far as they are on this host. False if there is
    one that cannot be found: it has ended, or is on another host, or had not shown itself."""
    end = time.monotonic() + longest_s
    found = [_watch(rank) for rank in ranks]
    for process in found:
        if process is not None:
            poll = select.poll()
            poll.register(process, select.POLLIN)
            poll.poll(max(0.0, end - time.monotonic()) * 1000)
            os.close(process)
    if None in found or not found:
        return False
    time.sleep(_REAPED_S)
    return True


def _watch(rank):
    """A descriptor that is ready when the rank's process has ended, or None."""
    name = _name(rank)
    if name is None or not hasattr(os, "pidfd_open"):
        return None
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(1)
        try:
            line.connect(name)
            sent = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return os.pidfd_open(struct.unpack("3i", sent)[0])
        except OSError:
            return None
