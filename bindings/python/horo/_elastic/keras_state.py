# SPDX-License-Identifier: Apache-2.0
"""The elastic state of a model of Keras 2 or 3, on any backend. It imports no framework."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from horo._elastic.arrays import ArraysState


def settle(model: Any) -> None:
    """Under JAX, Keras keeps the values of a running fit() outside of the variables: puts them back,
    so that variables can be read and assigned."""
    sync = getattr(model, "jax_state_sync", None)
    if sync is not None:
        sync()


def array_of(variable: Any) -> Any:
    """The value of a Keras variable as an array."""
    value = getattr(variable, "value", variable)
    value = value() if callable(value) else value
    if hasattr(value, "detach"):  # torch
        value = value.detach().cpu()
    return numpy.asarray(value)


def variables_of(model: Any, optimizer: Any) -> list[Any]:
    """All variables of a model and of its optimizer, which is built if it is not yet."""
    if optimizer is not None and getattr(model, "built", True):
        trainable = list(model.trainable_variables)
        if hasattr(optimizer, "build"):
            if not getattr(optimizer, "built", False):
                optimizer.build(trainable)
        elif hasattr(optimizer, "_create_all_weights"):  # the legacy ones of Keras 2
            optimizer._create_all_weights(trainable)
    found = list(getattr(model, "variables", None) or model.weights)
    if optimizer is not None:
        more = optimizer.variables
        found += more() if callable(more) else more
    return list({id(one): one for one in found}.values())


class KerasState(ArraysState):
    """A model with its optimizer, and any Python values as keywords, such as batch=0, epoch=0. Without
    `optimizer` it is that of model.compile(). `backend` has no effect."""

    def __init__(
        self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any
    ) -> None:
        del backend
        self.model = model
        self.optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        super().__init__(**kwargs)

    def reset(self) -> None:
        """Under JAX, forgets compiled programs, which are made for a number of ranks."""
        on_jax = sys.modules.get("horo.keras._jax")
        if on_jax is not None:
            on_jax.forget_programs()

    def _variables(self):
        settle(self.model)
        return variables_of(self.model, self.optimizer)

    def _read_arrays(self):
        return [array_of(one) for one in self._variables()]

    def _write_arrays(self, arrays):
        for variable, array in zip(self._variables(), arrays):
            variable.assign(array)
