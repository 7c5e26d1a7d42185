# SPDX-License-Identifier: Apache-2.0
"""horo.run(): a Python function as the ranks of a job.

Ranks fetch the function from this process, and give their results back, over connections that a key
of the call protects (_talk). The key travels in their environment, which `horo run` carries inside
its own connections; where this process is, they know from the address at which they reach the
launcher.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import warnings
from typing import TYPE_CHECKING

from horo import _talk
from horo.errors import HoroError, RankError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

PACKAGE = os.path.dirname(os.path.abspath(__file__))
SERVER, KEY = "HORO_FUNCTION_SERVER", "HORO_FUNCTION_KEY"


def dumps(value):
    """By cloudpickle where it is there, which takes functions of the main program too."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return cloudpickle.dumps(value)


def _dumps_call(func, args, kwargs):
    """What a rank unpickles. Fails: ValueError (the ranks could not find the function)."""
    if getattr(func, "__module__", None) == "__main__":
        try:
            import cloudpickle  # noqa: F401
        except ImportError:
            name = getattr(func, "__qualname__", repr(func))
            raise ValueError(
                f"{name} is a function of the main program, which the ranks do not load: install "
                "cloudpickle, or put the function into a module"
            ) from None
    return dumps((func, tuple(args), dict(kwargs or {})))


def _program():
    """The `horo` of this package's build, prefix or wheel, else that of PATH. Fails: HoroError."""
    folder = os.path.dirname(PACKAGE)
    places = [
        os.path.abspath(os.path.join(folder, *up, "bin", "horo"))
        for up in ([".."], ["..", "..", ".."])
    ]
    places.append(os.path.join(sysconfig.get_path("scripts"), "horo"))  # a wheel's
    for place in places:
        if os.access(place, os.X_OK):
            return place
    found = shutil.which("horo")
    if found is None:
        raise HoroError(f"horo.run() needs the program horo; tried {', '.join(places)} and PATH")
    return found


class _Server:
    """Gives the function to ranks and takes their answers."""

    def __init__(self, payload, everywhere):
        self.key = secrets.token_bytes(32)
        self.answers = {}  # rank -> what it sent, in the order of their coming
        self._payload = payload
        self._closed = threading.Event()
        self._listener = _talk.listen(everywhere)
        names = [socket.getfqdn(), socket.gethostname()] if everywhere else []
        port = self._listener.getsockname()[1]
        self.place = ",".join([str(port), *dict.fromkeys(names), "127.0.0.1"])
        self._thread = threading.Thread(target=self._accept, name="horo-run", daemon=True)
        self._thread.start()

    def _accept(self):
        with self._listener:
            while True:
                try:
                    connection, _ = self._listener.accept()
                except OSError:  # it went away again, there are too many, or close()
                    if self._closed.wait(0.1):
                        return
                    continue
                # Of its own, so that a stranger who says nothing keeps nobody waiting.
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # there are too many: the ranks wait for each other
                    self._serve(connection)

    def _serve(self, connection):
        try:
            with _talk.Talk(connection, self.key, asks=False) as talk:
                rank = pickle.loads(talk.receive())
                if rank is None:
                    talk.send(self._payload)
                    return
                self.answers[rank] = pickle.loads(talk.receive())
                talk.send(b"")  # it has arrived
        except (OSError, MemoryError):
            pass  # a stranger; or a rank without an answer: the report of `horo run` says why

    def close(self):
        self._closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        self._thread.join()


def _renamed(new, old, value, other):
    if other is None:
        return value
    warnings.warn(f"{old}= is deprecated; use {new}=", DeprecationWarning, stacklevel=3)
    return other


def _flags(pairs, verbose, use_mpi, use_gloo):
    words = []
    for flag, value in pairs:
        if value is not None:
            words += [flag, str(value)]
    for flag, wanted in (("--verbose", verbose), ("--mpi", use_mpi), ("--gloo", use_gloo)):
        if wanted:
            words.append(flag)
    return words


def run(
    func: Callable[..., Any],
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int = 1,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    slots: int | None = None,
    reset_limit: int | None = None,
    cooldown_range: tuple[int, int] | None = None,
    hosts: str | None = None,
    hostfile: str | None = None,
    start_timeout: int | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    disable_cache: bool | None = None,
    output_filename: str | None = None,
    verbose: int | bool | None = None,
    use_gloo: bool | None = None,
    use_mpi: bool | None = None,
    mpi_args: str | None = None,
    network_interface: str | None = None,
    executable: str | None = None,
    network_interfaces: Sequence[str] | None = None,
    host_discovery_script: str | None = None,
    np: int | None = None,
    min_np: int | None = None,
    max_np: int | None = None,
) -> list[Any]:
    """Runs func(*args, **kwargs) as `num_proc` ranks by `horo run` and returns what they returned,
    in rank order. What the function prints goes where `horo run` prints. Options are those of
    `horo run`; disable_cache is accepted, and nothing is cached.

    The function is pickled: by cloudpickle where it is there, else it must be one of a module that
    the ranks' hosts have too. Fails: RankError, with the traceback of the first rank whose function
    raised; HoroError (the job failed otherwise); ValueError (hosts= and hostfile= together,
    use_gloo= and use_mpi=); UnsupportedError (what asks for an elastic job).
    """
    del disable_cache
    num_proc = _renamed("num_proc", "np", num_proc, np)
    min_num_proc = _renamed("min_num_proc", "min_np", min_num_proc, min_np)
    max_num_proc = _renamed("max_num_proc", "max_np", max_num_proc, max_np)
    if network_interface is not None:
        network_interfaces = network_interface.split(",")
        _renamed("network_interfaces", "network_interface", None, network_interface)
    elastic = (min_num_proc, max_num_proc, slots, reset_limit, cooldown_range)
    if any(value is not None for value in elastic):
        raise UnsupportedError("elastic jobs are not part of this version: give num_proc= alone")
    if use_gloo and use_mpi:
        raise ValueError("give use_gloo or use_mpi, not both")
    if hosts is not None and hostfile is not None:
        raise ValueError("give hosts or hostfile, not both")
    words = _flags(
        [
            ("-np", num_proc),
            ("-H", hosts),
            ("--hostfile", hostfile),
            ("--host-discovery-script", host_discovery_script),
            ("--start-timeout", start_timeout),
            ("--ssh-port", ssh_port),
            ("--ssh-identity-file", ssh_identity_file),
            ("--output-filename", output_filename),
            ("--mpi-args", mpi_args),
            ("--network-interfaces", network_interfaces and ",".join(network_interfaces)),
        ],
        verbose,
        use_mpi,
        use_gloo,
    )
    payload = pickle.dumps((sys.path, _dumps_call(func, args, kwargs)), pickle.HIGHEST_PROTOCOL)
    given = (hosts or hostfile or host_discovery_script) is not None
    server = _Server(payload, given or _over_hosts(words))
    try:
        code = _start(words, executable or sys.executable, server)
    finally:
        server.close()
    return _collected(server.answers, code, num_proc)


def _over_hosts(words):
    """Whether a batch system, or the configuration, gives the job other hosts than this one."""
    command = [_program(), "run", *words, "--dry-run", "--json", "true"]
    plan = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return plan.returncode == 0 and json.loads(plan.stdout)["starter"] != "local"


def _start(words, executable, server):
    """Runs the job to its end; its exit code."""
    environment = {**os.environ, SERVER: server.place, KEY: server.key.hex()}
    command = [_program(), "run", *words, executable, os.path.join(PACKAGE, "_run_rank.py")]
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()  # the job ends as a whole
            raise


def _collected(answers, code, ranks):
    """The results. What failed first came first: its peers fail because of it."""
    for rank, (_, failure) in answers.items():
        if failure is not None:
            raise _rank_error(rank, *failure)
    missing = [rank for rank in range(ranks) if rank not in answers]
    if missing and not code:
        raise HoroError(
            f"there is no result of rank {missing[0]}: its process ended, with exit code 0, before "
            "the function returned"
        )
    if code:
        without = f"; there is no result of rank {missing[0]}" if missing else ""
        raise HoroError(f"horo run ended with exit code {code}{without}; its report says why")
    return [pickle.loads(answers[rank][0]) for rank in range(ranks)]


def _rank_error(rank, host, words, pickled):
    error = RankError(f"the function failed on rank {rank}, on host {host}:\n{words}")
    error.rank, error.host, error.traceback = rank, host, words
    try:
        error.__cause__ = pickle.loads(pickled)
    except Exception:
        pass  # of a class that this process does not have, or it could not be pickled
    return error
