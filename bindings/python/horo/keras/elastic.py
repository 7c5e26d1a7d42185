# SPDX-License-Identifier: Apache-2.0
"""Trainings with Keras whose ranks come and go.

    state = horo.elastic.KerasState(model, batch=0, epoch=0)

    @horo.elastic.run
    def train(state):
        model.fit(..., initial_epoch=state.epoch, callbacks=[
            horo.elastic.UpdateEpochStateCallback(state),
            horo.elastic.CommitStateCallback(state, batches_per_commit=10)])

    train(state)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horo._elastic.generation import generation, is_elastic, pending_change, survivors
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.keras_state import KerasState
from horo._elastic.loop import renew
from horo._elastic.loop import run_fn as _run_fn
from horo._elastic.state import ObjectState, State
from horo.keras._errors import translating
from horo.keras.callbacks import (
    CommitStateCallback,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a training, whose first argument is its state; see horo.elastic.run. Errors of a
    backend that come from a collective count as Horo's."""
    return _run_fn(translating(func), renew)


def run_fn(func: Callable[..., Any], reset: Callable[[], Any]) -> Callable[..., Any]:
    """Like run(), with a function of the program that shuts down and initialises again."""
    return _run_fn(translating(func), reset)


__all__ = [
    "CommitStateCallback",
    "generation",
    "HostsUpdatedInterrupt",
    "is_elastic",
    "KerasState",
    "ObjectState",
    "pending_change",
    "run",
    "run_fn",
    "State",
    "survivors",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
]
