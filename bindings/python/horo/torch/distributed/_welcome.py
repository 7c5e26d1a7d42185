# SPDX-License-Identifier: Apache-2.0
"""Rank 0's listener: takes the connection of each rank that proves its number.

Every process can connect to an address. A caller that says nothing, or the wrong thing, keeps no rank waiting: all
callers are served at the same time, each for a limited time, and there is a limit to their number.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import socket
import struct
import time

from horo.errors import StartError

NONCE = 32
RANK = struct.Struct("<I")
PROOF = 32
PATIENCE_S = 20.0  # for one caller's proof
MOST_STRANGERS = 128  # beside one caller for each rank
_LONGEST_LOOK_S = 3600.0  # the kernel's limit is 24 days


class _Caller:
    """A connection whose other end has not proved yet which rank it is."""

    def __init__(self, connection):
        connection.setblocking(False)
        self.socket = connection
        self.nonce = secrets.token_bytes(NONCE)
        self.ends = time.monotonic() + PATIENCE_S
        self.said = b""
        connection.send(self.nonce)  # fits into the buffer of every new connection

    def hear(self):
        """Reads what has come. True when it has said all that it has to. Fails: OSError (it has gone)."""
        piece = self.socket.recv(RANK.size + PROOF - len(self.said))
        if not piece:
            raise ConnectionError("the connection was closed")
        self.said += piece
        return len(self.said) == RANK.size + PROOF


class Welcome:
    """Owns the callers until they are ranks or are sent away. `check(nonce, rank, proof)` says whether a proof is
    right. Thread: one."""

    def __init__(self, listener, size, check):
        self._listener = listener
        self._size = size
        self._check = check
        self._callers: dict[socket.socket, _Caller] = {}
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def fill(self, connections, timeout_s):
        """Adds the connections of all ranks that are not in `connections`, a dict by rank. Fails: StartError."""
        end = time.monotonic() + timeout_s
        while len(connections) < self._size:
            now = time.monotonic()
            if now >= end:
                missing = [rank for rank in range(self._size) if rank not in connections]
                raise StartError(f"ranks {missing} have not joined the process group in {timeout_s:g} s")
            for caller in [one for one in self._callers.values() if one.ends <= now]:
                self._send_away(caller)
            wakes = min([end, *(caller.ends for caller in self._callers.values())])
            for key, _ in self._selector.select(min(max(0.0, wakes - now), _LONGEST_LOOK_S)):
                if key.fileobj is self._listener:
                    self._answer()
                elif key.data.socket in self._callers:
                    self._hear(key.data, connections)

    def close(self):
        """Sends away the callers that are left. The listener stays the caller's."""
        for caller in list(self._callers.values()):
            self._send_away(caller)
        self._selector.close()

    def _answer(self):
        with contextlib.suppress(OSError):  # it has gone again
            connection, _ = self._listener.accept()
            try:
                caller = _Caller(connection)
            except OSError:
                connection.close()
                return
            if len(self._callers) >= self._size + MOST_STRANGERS:
                self._send_away(next(iter(self._callers.values())))  # the oldest
            self._callers[connection] = caller
            self._selector.register(connection, selectors.EVENT_READ, caller)

    def _hear(self, caller, connections):
        try:
            if not caller.hear():
                return
        except BlockingIOError:
            return
        except OSError:
            self._send_away(caller)
            return
        (rank,) = RANK.unpack(caller.said[: RANK.size])
        known = self._check(caller.nonce, rank, caller.said[RANK.size :]) and _same_user(caller.socket)
        if not known or not 0 < rank < self._size or rank in connections:
            self._send_away(caller)
            return
        self._forget(caller)
        caller.socket.setblocking(True)
        connections[rank] = caller.socket

    def _forget(self, caller):
        self._selector.unregister(caller.socket)
        del self._callers[caller.socket]

    def _send_away(self, caller):
        self._forget(caller)
        caller.socket.close()


def _same_user(connection):
    if connection.family != socket.AF_UNIX:
        return True
    sent = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return struct.unpack("3i", sent)[1] == os.getuid()
