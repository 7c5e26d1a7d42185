# SPDX-License-Identifier: Apache-2.0
"""Lets the ranks of `horo run` meet before torch's own rendezvous.

torch's store waits for a rank until its time limit, also for one that has ended. And a rank that makes the
default group again, on the same port, may reach the store that rank 0 is about to close. Horo's own start
knows which ranks have ended, and lets no rank go on before all have left the job before. So where `horo run`
has started the ranks, they join the job first, and torch's store is used when all of them are there.
"""

from __future__ import annotations

import contextlib
import datetime
import inspect
import os

from torch.distributed import distributed_c10d as c10d

from horo import _job, _life, errors

_KNOB, _KNOB_OF_HOROVOD = "HORO_START_TIMEOUT", "HOROVOD_START_TIMEOUT"
_LONGEST_S = 86400
_USUAL_TIMEOUT = datetime.timedelta(minutes=30)  # torch's for gloo

_joined = False


def has_joined():
    """Whether meet_first() has joined the job that this process is in, so that the default group owns it."""
    return _joined and _job.is_initialized()


def forget():
    """The default group has left the job."""
    global _joined
    _joined = False


def meet_first(function, arguments, options):
    """Joins the job of `horo run`, if init_process_group(*arguments, **options) is about to make a default group
    of its ranks. `function`: torch's. Blocks until all ranks have joined. Fails: StartError, PeerLostError (a rank
    has ended), TimeOutError."""
    global _joined
    try:
        given = inspect.signature(function).bind(*arguments, **options).arguments
    except TypeError:  # torch's function says so
        return
    if c10d.is_initialized() or _job.is_initialized() or os.environ.get("HORO_ELASTIC") or not _is_of_all_ranks(given):
        return
    timeout = given.get("timeout") or _USUAL_TIMEOUT
    with _patience(timeout.total_seconds()):
        try:
            _life.init()
        except errors.HoroError as error:
            error.args = (f"init_process_group: {error}",)
            raise
    _joined = True


def _is_of_all_ranks(given):
    """Whether the group has the ranks of `horo run`, and this process the rank that it has there."""
    place = (os.environ.get("HORO_RANK"), os.environ.get("HORO_SIZE"))
    if None in place:
        return False
    found = [given.get("rank", -1), given.get("world_size", -1)]
    method = given.get("init_method") or "env://"
    for index, variable in enumerate(("RANK", "WORLD_SIZE")):
        if not isinstance(found[index], int) or found[index] < 0:
            found[index] = os.environ.get(variable) if method == "env://" else None
    return tuple(map(str, found)) == place


@contextlib.contextmanager
def _patience(seconds):
    """The ranks wait for each other as long as torch would, unless the user has set HORO_START_TIMEOUT."""
    if os.environ.get(_KNOB) or os.environ.get(_KNOB_OF_HOROVOD):
        yield
        return
    kept = os.environ.get(_KNOB)
    os.environ[_KNOB] = f"{min(max(1, int(seconds)), _LONGEST_S)}s"
    try:
        yield
    finally:
        del os.environ[_KNOB]
        if kept is not None:
            os.environ[_KNOB] = kept
