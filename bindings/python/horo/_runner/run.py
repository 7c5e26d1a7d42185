# SPDX-License-Identifier: Apache-2.0
"""horo.run(): runs a Python function as the ranks of a job.

The ranks (rank.py) fetch the function from this process and send their results back. A key, made
for each call, protects the connections (talk.py). `horo run` passes the key on in the ranks'
environment, inside its own protected connections. The ranks find this process at the address of the
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

from horo._runner.arguments import check_arguments
from horo._runner.talk import Talk, listen
from horo.errors import HoroError, RankError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
SERVER, KEY = "HORO_FUNCTION_SERVER", "HORO_FUNCTION_KEY"


def dumps(value):
    """The pickled value; by cloudpickle, which also takes functions of the main program, if it is
    installed."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return cloudpickle.dumps(value)


def _dumps_call(func, args, kwargs):
    """The pickled call for a rank. Fails: ValueError (the ranks could not find the function)."""
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
    """Path of the program `horo` of this package's build, prefix or wheel; else of the one in PATH.
    Fails: HoroError."""
    folder = os.path.dirname(PACKAGE)
    places = [
        os.path.abspath(os.path.join(folder, *up, "bin", "horo"))
        for up in ([".."], ["..", "..", ".."])
    ]
    places.append(os.path.join(sysconfig.get_path("scripts"), "horo"))  # of a wheel
    for place in places:
        if os.access(place, os.X_OK):
            return place
    found = shutil.which("horo")
    if found is None:
        raise HoroError(f"horo.run() needs the program horo; tried {', '.join(places)} and PATH")
    return found


class _Server:
    """Sends the function to the ranks and receives their answers."""

    def __init__(self, payload, everywhere):
        self.key = secrets.token_bytes(32)
        self.answers = {}  # (generation, rank, ranks) -> its answer, in the order of arrival
        self._payload = payload
        self._closed = threading.Event()
        self._listener = listen(everywhere)
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
                except OSError:  # the client left, there are too many clients, or close()
                    if self._closed.wait(0.1):
                        return
                    continue
                # One thread per connection, so that a silent client blocks no other.
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # too many threads: the ranks are served one by one
                    self._serve(connection)

    def _serve(self, connection):
        try:
            with Talk(connection, self.key, asks=False) as talk:
                place = pickle.loads(talk.receive())
                if place is None:
                    talk.send(self._payload)
                    return
                self.answers[place] = pickle.loads(talk.receive())
                talk.send(b"")  # confirms the arrival
        except (OSError, MemoryError):
            pass  # not a rank, or a rank that ended: the report of `horo run` says why

    def close(self):
        self._closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        self._thread.join()


# Arguments of run() whose second names are deprecated.
_RENAMED = {
    "num_proc": "np",
    "min_num_proc": "min_np",
    "max_num_proc": "max_np",
    "network_interfaces": "network_interface",
}


def _renamed(new, old, value, other):
    if other is None:
        return value
    # The warning names the line that called run().
    warnings.warn(f"{old}= is deprecated; use {new}=", DeprecationWarning, stacklevel=4)
    return other


def _words(options, flags):
    """The command line for options with a value and for flags without one."""
    words = []
    for option, value in options.items():
        if value is not None:
            words += [option, str(value)]
    return words + [flag for flag, wanted in flags.items() if wanted]


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
    network_interface: str | Sequence[str] | None = None,
    executable: str | None = None,
    np: int | None = None,
    min_np: int | None = None,
    max_np: int | None = None,
    network_interfaces: Sequence[str] | None = None,
    host_discovery_script: str | None = None,
    elastic_timeout: int | None = None,
) -> list[Any]:
    """Runs func(*args, **kwargs) as `num_proc` ranks by `horo run`, and returns their results in
    rank order. The options are those of `horo run`; disable_cache has no effect. With min_num_proc
    or max_num_proc the job is elastic: the results are those of the ranks of the last generation.

    The function is pickled. Without cloudpickle it must belong to a module that the ranks' hosts
    have too. Fails: RankError, with the traceback of the first rank whose function raised;
    HoroError (the job failed in another way); ValueError (an argument is not of its kind, or hosts=
    and hostfile=, or use_gloo= and use_mpi= together, or options of elastic jobs without
    min_num_proc= and max_num_proc=)."""
    given = locals()
    check_arguments(given)
    return _run_job(
        _words_of(_under_new_names(given)),
        _dumps_call(func, args, kwargs),
        (hosts or hostfile or host_discovery_script) is not None,
        executable,
        None if _elastic(given) else given["num_proc"],
    )


def _under_new_names(given):
    """`given`, from names to values, with the values of deprecated names under the new ones. Fails:
    ValueError, UnsupportedError (arguments that exclude each other)."""
    interface = given["network_interface"]
    if isinstance(interface, str):
        given["network_interface"] = interface.split(",")
    for new, old in _RENAMED.items():
        given[new] = _renamed(new, old, given[new], given[old])
    _refuse(given)
    if given["hosts"] is not None and given["hostfile"] is not None:
        raise ValueError("give hosts or hostfile, not both")
    return given


def _words_of(given):
    """The options of `horo run` for the arguments of run()."""
    interfaces, cooldown = given["network_interfaces"], given["cooldown_range"]
    options = {
        "-np": given["num_proc"],
        "--min-np": given["min_num_proc"],
        "--max-np": given["max_num_proc"],
        "--slots-per-host": given["slots"],
        "--reset-limit": given["reset_limit"],
        "--elastic-timeout": given["elastic_timeout"],
        "-H": given["hosts"],
        "--hostfile": given["hostfile"],
        "--host-discovery-script": given["host_discovery_script"],
        "--start-timeout": given["start_timeout"],
        "--ssh-port": given["ssh_port"],
        "--ssh-identity-file": given["ssh_identity_file"],
        "--output-filename": given["output_filename"],
        "--mpi-args": given["mpi_args"],
        "--network-interfaces": interfaces and ",".join(map(str, interfaces)),
        "--blacklist-cooldown-range": cooldown and ",".join(map(str, cooldown)),
    }
    return _words(
        options,
        {"--verbose": given["verbose"], "--mpi": given["use_mpi"], "--gloo": given["use_gloo"]},
    )


def _elastic(given):
    """Whether the arguments ask for an elastic job."""
    return given["min_num_proc"] is not None or given["max_num_proc"] is not None


def _refuse(given):
    """Fails: ValueError (arguments that exclude or need each other)."""
    if given["use_gloo"] and given["use_mpi"]:
        raise ValueError("give use_gloo or use_mpi, not both")
    if _elastic(given):
        if given["use_mpi"]:
            raise ValueError("an elastic job cannot run with use_mpi: mpirun ends all its ranks")
        return
    for name in ("reset_limit", "cooldown_range", "elastic_timeout"):
        if given[name] is not None:
            raise ValueError(f"{name} is for elastic jobs: give min_num_proc or max_num_proc, too")


def _run_job(words, call, hosts_given, executable, ranks):
    """Runs `horo run` with these options; returns the ranks' results. `ranks`: their number, None in
    an elastic job."""
    payload = pickle.dumps((sys.path, call), pickle.HIGHEST_PROTOCOL)
    server = _Server(payload, hosts_given or _over_hosts(words))
    try:
        code = _start(words, executable or sys.executable, server)
    finally:
        server.close()
    if ranks is None:
        return _collected_of_last(server.answers, code)
    answers = {rank: answer for (_, rank, _), answer in server.answers.items()}
    return _collected(answers, code, ranks)


def _over_hosts(words):
    """Whether a batch system or the configuration gives the job other hosts than this one."""
    command = [_program(), "run", *words, "--dry-run", "--json", "true"]
    plan = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return plan.returncode == 0 and json.loads(plan.stdout)["starter"] != "local"


def _start(words, executable, server):
    """Runs the job to its end and returns its exit code."""
    environment = {**os.environ, SERVER: server.place, KEY: server.key.hex()}
    command = [_program(), "run", *words, executable, os.path.join(HERE, "rank.py")]
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()  # ends the whole job
            raise


def _collected(answers, code, ranks):
    """The results. The first answer with a failure is the cause; the others fail because of it."""
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


def _collected_of_last(answers, code):
    """The results of an elastic job: those of the ranks of its last generation. Workers of earlier
    ones may have failed."""
    if not code and answers:
        last = max(generation for generation, _, _ in answers)
        found = {place[1]: answer for place, answer in answers.items() if place[0] == last}
        return _collected(found, code, max(place[2] for place in answers if place[0] == last))
    failed = {place[1]: one for place, one in answers.items() if one[1] is not None}
    return _collected(failed, code, 1)


def _rank_error(rank, host, words, pickled):
    error = RankError(f"the function failed on rank {rank}, on host {host}:\n{words}")
    error.rank, error.host, error.traceback = rank, host, words
    try:
        error.__cause__ = pickle.loads(pickled)
    except Exception:
        pass  # its class is unknown here, or it could not be pickled
    return error
