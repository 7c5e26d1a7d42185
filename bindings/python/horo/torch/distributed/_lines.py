# SPDX-License-Identifier: Apache-2.0
"""Connects every rank with rank 0, for _members.py and _announcer.py.

On one host by a socket without a name in any file system, which only processes of the same user may
use. Between hosts by TCP, where each rank proves that it knows the job's secret.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket

from horo import _job
from horo.errors import StartError
from horo.torch.distributed._announcer import Announcer
from horo.torch.distributed._members import Line
from horo.torch.distributed._welcome import NONCE, RANK, Welcome

_PURPOSE = "torch.distributed groups"


def connect(store, rank, size, address, timeout_s):
    """The pair (this rank's line to rank 0, rank 0's Announcer or None). `address`: of rank 0's host,
    None when all ranks are on one host. Fails: StartError."""
    if rank:
        return Line(_dial(store, rank, timeout_s)), None
    listener, where = _listen(address)
    own, other = socket.socketpair()
    connections = {0: other}
    with listener, contextlib.closing(Welcome(listener, size, _is_proof)) as welcome:
        store.set("horo/groups", where)
        welcome.fill(connections, timeout_s)
    return Line(own), Announcer([connections[one] for one in range(size)])


def _listen(address):
    if address is None:
        name = f"horo.torch.{os.getuid()}.{secrets.token_hex(16)}"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\0" + name)
        where = name
    else:
        listener = socket.socket()
        listener.bind((address, 0))
        where = f"{address}:{listener.getsockname()[1]}"
    listener.listen(1024)
    return listener, where


def _dial(store, rank, timeout_s):
    where = bytes(store.get("horo/groups")).decode()
    host, _, port = where.rpartition(":")
    try:
        if host:
            line = socket.create_connection((host, int(port)), timeout_s)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(timeout_s)
            line.connect("\0" + where)
        line.sendall(RANK.pack(rank) + _proof(_take(line, NONCE), rank))
    except OSError as error:
        raise StartError(f"rank {rank} cannot reach rank 0 at {where}: {error}") from None
    line.settimeout(None)
    return line


def _is_proof(nonce, rank, proof):
    return hmac.compare_digest(proof, _proof(nonce, rank))


def _proof(nonce, rank):
    """An answer that only a rank of this job can give. On one host the job has no secret."""
    key = _job.key(_PURPOSE) or b"one host"
    return hmac.digest(key, nonce + RANK.pack(rank), "sha256")


def _take(connection, count):
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionError("the connection was closed")
        data += piece
    return data
