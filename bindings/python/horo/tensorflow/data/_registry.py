# SPDX-License-Identifier: Apache-2.0
"""Where dispatchers and workers of a data service find each other: a table on rank 0 of the compute
job. Each message is a line of JSON over a connection that proves the job's key first."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener, answer_challenge, deliver_challenge
from typing import Any

from horo.errors import HoroError, TimeOutError

STOP = "stop"  # this name exists once the service is to end


class Registry:
    """The table's server. Names have values; to ask for a name waits until it has one."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._listener = Listener(("0.0.0.0", 0))
        self._closed = False
        self._values: dict[str, Any] = {}
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="horo-registry", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._listener.address[1])

    def close(self) -> None:
        self._closed = True
        self._listener.close()

    def _serve(self):
        while not self._closed:
            try:
                connection = self._listener.accept()
            except OSError:  # closed, the other end has gone again, or there are too many files
                time.sleep(0.01)
                continue
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        """Serves one connection, which proves the key first. A stranger keeps nobody waiting."""
        errors = (OSError, EOFError, ValueError, KeyError, TypeError, AuthenticationError)
        with contextlib.suppress(*errors), connection:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            while True:
                request = json.loads(connection.recv_bytes(65536))
                answer = self._put(**request) if "value" in request else self._wait(**request)
                connection.send_bytes(json.dumps(answer).encode())

    def _put(self, name, value):
        with self._changed:
            self._values[name] = value
            self._changed.notify_all()
        return True

    def _wait(self, name, timeout):
        with self._changed:
            self._changed.wait_for(lambda: name in self._values, timeout)
            return self._values.get(name)


def _ask(address, key, limit=None, **request):
    host, _, port = address.rpartition(":")
    try:
        with Client((host, int(port)), authkey=key) as connection:
            connection.send_bytes(json.dumps(request).encode())
            if limit is not None and not connection.poll(limit + 5):
                return None
            return json.loads(connection.recv_bytes())
    except AuthenticationError as error:
        raise HoroError(f"the data service at {address} has another key: {error}") from None
    except (OSError, EOFError) as error:
        raise HoroError(f"the data service at {address} does not answer: {error}") from None


def put(address: str, key: bytes, name: str, value: Any) -> None:
    """Gives a name its value."""
    _ask(address, key, name=name, value=value)


def wait(address: str, key: bytes, name: str, seconds: float | None) -> Any:
    """The value of a name. Fails: TimeOutError (nobody gives it one in time)."""
    found = _ask(address, key, seconds, name=name, timeout=seconds)
    if found is None:
        raise TimeOutError(
            f"the data service at {address} has no {name} after {seconds} s; is the compute job running, "
            "with as many ranks as the training expects?"
        )
    return found


def own_host() -> str:
    """The address by which other machines reach this one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:  # a machine without a network
            return "127.0.0.1"
