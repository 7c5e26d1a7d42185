# SPDX-License-Identifier: Apache-2.0
"""Rank 0's end of _members.py: one thread that decides the order in which sets come and go."""

from __future__ import annotations

import json
import selectors
import socket
import threading

from horo.torch.distributed._members import Line

_MOST = 1 << 20  # bytes of one message


class Announcer:
    """The connections of all ranks. A set has users: the ranks that have taken it, each as often as it
    has. Thread: its own, but for close()."""

    def __init__(self, connections):
        """`connections`: a socket for each rank, in their order, which this object owns."""
        self._sockets = connections
        self._lines = [Line(connection) for connection in connections]
        self._rests = [b""] * len(connections)
        self._users = {}  # ranks -> number of takes that were not given back
        self._unheard = set(range(len(connections)))
        self._selector = selectors.DefaultSelector()
        for rank, connection in enumerate(connections):
            self._selector.register(connection, selectors.EVENT_READ, rank)
        self._own, self._wake = socket.socketpair()
        self._selector.register(self._own, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="horo-announcer", daemon=True)
        self._thread.start()

    def close(self):
        self._wake.close()
        self._thread.join()

    def _run(self):
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return self._end()
                self._read(key.data)

    def _end(self):
        for line in self._lines:
            line.close()
        self._selector.close()
        self._own.close()

    def _read(self, rank):
        try:
            data = self._sockets[rank].recv(65536)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(self._sockets[rank])
            self._unheard.discard(rank)
            return
        *whole, rest = (self._rests[rank] + data).split(b"\n")
        self._rests[rank] = rest[:_MOST]
        for line in whole:
            self._handle(rank, json.loads(line))

    def _handle(self, rank, message):
        if "want" in message:
            ranks = tuple(message["want"])
            users = self._users.get(ranks, 0)
            if not users:
                self._tell_all({"add": ranks})
            self._users[ranks] = users + 1
            self._tell(rank, {"granted": message["id"]})
        elif "drop" in message:
            self._drop(tuple(message["drop"]))
        elif "question" in message:
            for other in message["ranks"]:
                self._tell(other, {"question": message["question"], "from": [rank, message["id"]]})
        else:
            asker, request = message["to"]
            self._tell(asker, {"reply": request, "rank": rank, "answer": message["answer"]})

    def _drop(self, ranks):
        users = self._users.get(ranks, 0) - 1
        self._users[ranks] = users
        if not users:
            del self._users[ranks]
            self._tell_all({"remove": ranks})

    def _tell(self, rank, message):
        try:
            self._lines[rank].send(message)
        except OSError:
            pass  # it has left; the runtime says so where it matters

    def _tell_all(self, message):
        for rank in range(len(self._lines)):
            self._tell(rank, message)
