# SPDX-License-Identifier: Apache-2.0
"""run(): calls a training again, with its state, whenever the members of the job have changed."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from horo import _job, _life, errors
from horo._barrier import barrier
from horo._elastic import generation
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.pause import Pause
from horo._elastic.programs import tell_differences
from horo._elastic.state import any_rank
from horo._sets import WORLD

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Failures that another generation does not mend.
_OF_THE_PROGRAM = (
    errors.DuplicateNameError,
    errors.ForkedError,
    errors.LibraryError,
    errors.MismatchError,
    errors.NotInitializedError,
    errors.RankError,
    errors.RemovedError,
    errors.ResourceError,
    errors.StartError,
    errors.UnsupportedError,
)


def mends(error: BaseException) -> bool:
    """Whether the job may go on after this failure, with other members."""
    if not generation.is_elastic():
        return False
    return isinstance(error, errors.HoroError) and not isinstance(error, _OF_THE_PROGRAM)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a training, whose first argument is its State:

        @horo.elastic.run
        def train(state):
            while state.step < steps: ...

    The wrapper makes the state equal on all ranks and calls the training. When a rank is lost, or
    check_host_updates() has found that the members are to change, it takes this process into the
    job's next generation and calls the training again. A process that is removed from the job exits
    with code 0. No collective may run before the training."""
    return run_fn(func, renew)


def run_fn(func: Callable[..., Any], reset: Callable[[], Any]) -> Callable[..., Any]:
    """Like run(), with a function of the program that shuts down and initialises again."""

    @functools.wraps(func)
    def wrapper(state: Any, *args: Any, **kwargs: Any) -> Any:
        WORLD.keep_optimizers()
        try:
            return _run(functools.partial(func, state, *args, **kwargs), reset, state)
        except errors.RemovedError:
            sys.exit(0)

    return wrapper


def _run(func, reset, state):
    skip_sync, pause = False, Pause(state)
    if _job.is_planned():
        _enter_prepared(reset, state)
    while True:
        results: list[Any] = []  # of the training, once it has ended on this rank
        try:
            tell_differences()
            _make_equal(skip_sync, state)
            pause.end()
            results.append(func())
            _leave_together()
            state._end_saving()
            return results[0]
        except errors.HoroError as error:
            if not mends(error):
                raise
            skip_sync, act = False, state._failed
        except HostsUpdatedInterrupt as interrupt:
            skip_sync, act = interrupt.skip_sync, None
        pause.begin(lost=act is not None)
        # The exception, and with it the frames of the training, are gone here.
        if act is not None and not results:
            act()
            act = None
        place = _job.place() if results and _job.is_initialized() else {}
        try:
            if not _enter_next(reset, state, act):
                skip_sync = False
        except errors.StartError as error:
            if not results:
                raise
            _tell_end(error)
            _job.keep_place(place)
            state._end_saving()  # on each rank that comes here, since rank 0 may be the lost one
            return results[0]


def _make_equal(skip_sync, state):
    """Gives all ranks the same state, unless they have it."""
    if _all_skip_sync(skip_sync, state):
        state._skipped_sync()
        return
    state._load_newest()
    state.sync()
    state._whole = True


def _tell_end(error):
    """A rank was lost while the others waited for each other at the end, and some of them have ended
    already. The training is complete here, too."""
    print(
        f"horo: the training has ended on this rank, and the job forms no further generation: {error}",
        file=sys.stderr,
        flush=True,
    )


_NEEDED, _SAVES, _SAVES_NOT = 1, 2, 4


def _all_skip_sync(skip_sync, state):
    """Whether no rank needs sync(). The ranks may have left the last generation in different ways: a
    loss can end on one rank the call that announces the removal of ranks on another. Fails on all
    ranks: ValueError (not all of them have called save_to())."""
    needed = not (skip_sync and generation.is_elastic()) or generation.survivors() != _job.size()
    flags = (_NEEDED if needed else 0) | (_SAVES_NOT if state._saver is None else _SAVES)
    found = any_rank(flags, "elastic.sync")
    if found & _SAVES and found & _SAVES_NOT:
        raise ValueError("some ranks have called save_to(), others have not; call it on all ranks")
    return not found & _NEEDED


def _enter_prepared(reset, state):
    """Joins the job that trains already. The state was made for the place that was planned."""
    state._prepare()
    try:
        _life.enter()
        state.on_reset()
    except errors.HoroError as error:
        if not mends(error) or not _job.is_initialized():
            raise
        _enter_next(reset, state)


def _enter_next(reset, state, act=None):
    """Enters the next generation. Returns False when a further loss has come between. `act`: takes the
    state of a complete training back, once there is a generation that repeats it."""
    undisturbed = True
    while True:
        try:
            reset()
            if act is not None:
                act()
                act = None
            state.on_reset()
            return undisturbed
        except errors.HoroError as error:
            if not mends(error) or not _job.is_initialized():
                raise
            undisturbed = False


def _leave_together():
    """Waits until all ranks have finished. A rank that is behind because of a loss in the last step
    can otherwise take its state from nobody."""
    if generation.is_elastic() and _job.is_initialized() and _job.size() > 1:
        barrier()


def renew() -> None:
    """Leaves the generation and enters the next one. Fails: RemovedError, StartError."""
    _life.shutdown()
    _life.init_again()
