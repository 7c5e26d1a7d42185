# SPDX-License-Identifier: Apache-2.0
"""Trainings with TensorFlow whose ranks come and go. `horo.elastic` has the parts that need no
framework.

    state = horo.elastic.TensorFlowKerasState(model, optimizer, batch=0, epoch=0)

    @horo.elastic.run
    def train(state):
        ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from horo._elastic.arrays import ArraysState
from horo._elastic.generation import generation, is_elastic, pending_change, survivors
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.keras_state import KerasState
from horo._elastic.loop import renew
from horo._elastic.loop import run_fn as _run_fn
from horo._elastic.state import ObjectState, State
from horo.tensorflow._errors import translating
from horo.tensorflow._variables import value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a training, whose first argument is its state; see horo.elastic.run. Errors of Horo's
    ops in a tf.function, which TensorFlow reports as its own, count as Horo's."""
    return _run_fn(translating(func), renew)


def run_fn(func: Callable[..., Any], reset: Callable[[], Any]) -> Callable[..., Any]:
    """Like run(), with a function of the program that shuts down and initialises again."""
    return _run_fn(translating(func), reset)


class TensorFlowState(ArraysState):
    """Variables of TensorFlow, and any Python values as keywords. `variables`: None in a graph of
    TensorFlow 1 means all global ones; `session` is that graph's session."""

    def __init__(
        self, variables: Iterable[Any] | None = None, session: Any = None, **kwargs: Any
    ) -> None:
        if variables is None and tf.executing_eagerly():
            raise ValueError("give the variables: eager programs have no list of all variables")
        self.variables = list(tf.compat.v1.global_variables() if variables is None else variables)
        self.session = session
        super().__init__(**kwargs)

    def _read_arrays(self):
        if self.session is not None:
            return self.session.run(self.variables)
        return [value_of(one).numpy() for one in self.variables]

    def _write_arrays(self, arrays):
        for variable, array in zip(self.variables, arrays):
            if self.session is not None:
                variable.load(array, self.session)
            else:
                variable.assign(array)


class TensorFlowKerasState(KerasState):
    """A Keras model with its optimizer, and any Python values as keywords: see horo.keras.elastic."""


__all__ = [
    "generation",
    "HostsUpdatedInterrupt",
    "is_elastic",
    "ObjectState",
    "pending_change",
    "run",
    "run_fn",
    "State",
    "survivors",
    "TensorFlowKerasState",
    "TensorFlowState",
]
