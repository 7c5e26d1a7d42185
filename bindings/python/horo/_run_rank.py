# SPDX-License-Identifier: Apache-2.0
"""One rank of horo.run(): fetches the function, runs it and gives its result back."""

import os
import pickle
import sys
import traceback
from multiprocessing.connection import Client

from horo import _run
from horo.errors import HoroError


def _connect():
    key = bytes.fromhex(os.environ.pop(_run.KEY))
    addresses, problem = os.environ.pop(_run.SERVER).split(","), None
    for address in addresses:
        host, port = address.rsplit(":", 1)
        try:
            return Client((host, int(port)), authkey=key)
        except OSError as error:
            problem = error
    raise HoroError(f"cannot reach horo.run() at {', '.join(addresses)}: {problem}")


def main():
    # mpirun's ranks know themselves by its variables.
    names = ("HORO_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    rank = int(next(os.environ[name] for name in names if name in os.environ))
    connection = _connect()
    connection.send(rank)
    path, pickled = pickle.loads(connection.recv_bytes())
    sys.path.extend(entry for entry in path if entry not in sys.path)
    answer: tuple = None, ""
    try:
        function, args, kwargs = pickle.loads(pickled)
        answer = _run.dumps(function(*args, **kwargs)), None
    except Exception:
        answer = None, traceback.format_exc()
    connection.send(answer)
    connection.recv()  # it has arrived
    if answer[1] is not None:
        sys.stderr.write(answer[1])
        sys.exit(1)


if __name__ == "__main__":
    main()
