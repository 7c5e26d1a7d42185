# SPDX-License-Identifier: Apache-2.0
"""One rank of horo.run(): fetches the function, runs it and sends its result back.

This file is run as a program. It imports the caller's own package by path, so that other modules in
the package's folder do not hide those of the standard library.
"""

import os
import sys

if __name__ == "__main__":
    HERE = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(HERE):
        sys.path[0] = os.getcwd()  # the package's modules must not be importable by short names
    PACKAGE = os.path.dirname(HERE)
    import importlib.util
    from typing import Any

    spec: Any = importlib.util.spec_from_file_location("horo", os.path.join(PACKAGE, "__init__.py"))
    sys.modules["horo"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["horo"])

import pickle
import socket
import traceback

from horo._runner.run import KEY, SERVER, dumps
from horo._runner.talk import connect
from horo.errors import HoroError, RemovedError


class _Caller:
    """The process that called horo.run()."""

    def __init__(self):
        self._key = bytes.fromhex(os.environ.pop(KEY))
        port, *self._hosts = os.environ.pop(SERVER).split(",")
        self._port = int(port)
        # The caller started the launcher, so this host reaches both at the same address.
        launcher = os.environ.get("HORO_RENDEZVOUS", "").rpartition(":")[0].strip("[]")
        if launcher:
            self._hosts.insert(0, launcher)

    def ask(self, *messages):
        """Sends messages and returns the answer. Each question has its own connection, because a
        function may run for days."""
        try:
            with connect(self._hosts, self._port, self._key) as talk:
                for message in messages:
                    talk.send(message)
                return talk.receive()
        except OSError as error:
            raise HoroError(
                f"{socket.gethostname()} cannot reach the process that called horo.run(): {error}"
            ) from None


def _failure(error):
    """An exception as the caller receives it: host, traceback, and the pickled exception or b""."""
    try:
        pickled = dumps(error)
    except Exception:
        pickled = b""
    return socket.gethostname(), traceback.format_exc(), pickled


def _place():
    """(generation, rank, number of ranks) when the function ends. In an elastic job, horo.init() has
    written them into the environment. The ranks of mpirun have MPI's variables instead of Horo's."""
    names = ("HORO_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    rank = next(os.environ[name] for name in names if name in os.environ)
    generation, size = os.environ.get("HORO_GENERATION", 0), os.environ.get("HORO_SIZE", 0)
    return int(generation), int(rank), int(size)


def main():
    caller = _Caller()
    path, pickled = pickle.loads(caller.ask(pickle.dumps(None)))
    sys.path.extend(entry for entry in path if entry not in sys.path)
    try:
        function, args, kwargs = pickle.loads(pickled)
        answer, failure = dumps(function(*args, **kwargs)), None
    except RemovedError:
        sys.exit(0)
    except Exception as error:
        answer, failure = None, _failure(error)
    caller.ask(pickle.dumps(_place()), pickle.dumps((answer, failure), pickle.HIGHEST_PROTOCOL))
    if failure is not None:
        sys.stderr.write(failure[1])
        sys.exit(1)


if __name__ == "__main__":
    main()
