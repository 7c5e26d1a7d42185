# SPDX-License-Identifier: Apache-2.0
"""Parts of a TorchState: each keeps a copy of one object's state_dict(), and moves it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch

from horo.torch._copies import Copied
from horo.torch._sampler import ElasticSampler
from horo.torch._state import (
    _load,
    _parameters,
    broadcast_optimizer_state,
    broadcast_parameters,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class StateHandler:
    """An object with state_dict() and load_state_dict(), such as a learning-rate scheduler."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._saved: Any = None

    def save(self) -> None:
        """Copies the object's state."""
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        """Gives the object the last copy."""
        if self._saved is not None:
            self.load(copy.deepcopy(self._saved))

    def sync(self) -> None:
        """Gives the object the state of rank 0. All ranks call it."""
        from horo._objects import broadcast_object

        self.load(broadcast_object(self.value.state_dict()))

    def set_value(self, value: Any) -> None:
        """Replaces the object, and copies its state."""
        self.value = value
        self.save()

    def load(self, state: Any) -> None:
        """Gives the object a state."""
        self.value.load_state_dict(state)

    def _take(self, state: Any) -> None:
        """Like load(), for a state that nobody else uses."""
        self.load(state)


class ModelStateHandler(StateHandler):
    """A torch.nn.Module."""

    _checked: Any = None

    def trains_only(self, known: set[int]) -> bool:
        """Whether each trained parameter has one of these ids. To walk through a large model takes
        longer than the rest of a commit, so this is done again only for another model or other ids.
        A parameter that is to be trained later gets to an optimizer, and thus among the ids."""
        if self._checked is None or self._checked[:2] != (id(self.value), known):
            trained = [one for one in self.value.parameters() if one.requires_grad]
            self._checked = id(self.value), known, all(id(one) in known for one in trained)
        return bool(self._checked[2])

    def sync(self) -> None:
        """Gives the model the parameters of rank 0. All ranks call it."""
        broadcast_parameters(self.value.state_dict(), 0)


class OptimizerStateHandler(StateHandler):
    """A torch.optim.Optimizer."""

    def sync(self) -> None:
        """Gives the optimizer the state of rank 0. All ranks call it."""
        broadcast_optimizer_state(self.value, 0)

    def load(self, state: Any) -> None:
        """Gives the optimizer a state; tensors keep the dtypes that they have there."""
        _load(self.value, state)

    def _take(self, state: Any) -> None:
        """Like load(), but without the copies that torch's load_state_dict() makes."""
        if not _loads_plainly(self.value):
            self.load(state)
            return
        _load(self.value, {**state, "state": {}})
        numbers = _parameters(state["param_groups"])
        of_number = dict(zip(numbers, _parameters(self.value.param_groups)))
        for number, one in state["state"].items():
            self.value.state[of_number.get(number, number)] = one

    def _options(self) -> Any:
        """The options of each group, such as its learning rate, which schedulers change."""
        groups = self.value.param_groups
        return [{key: one for key, one in group.items() if key != "params"} for group in groups]

    def _set_options(self, options: Any) -> None:
        for group, own in zip(self.value.param_groups, options):
            group.update(own)

    def _reducer(self) -> Any:
        """How far a DistributedOptimizer over all ranks is. None for other optimizers, also for one
        that changes parameters before it asks for the last gradients."""
        if not isinstance(self.value, Copied) or isinstance(self.value, torch.optim.LBFGS):
            return None
        own = vars(self.value)
        return own["_horo_reducer"] if own.get("_horo_comparison") is not None else None


def _loads_plainly(optimizer):
    """Whether load_state_dict() only copies the state of each parameter, in the host's memory."""
    loads = [one for one in type(optimizer).__mro__ if "load_state_dict" in vars(one)]
    own = next((one for one in loads if not issubclass(one, Copied)), None)
    hooks = ("_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks")
    if own is not torch.optim.Optimizer or any(getattr(optimizer, one, ()) for one in hooks):
        return False
    return all(one.device.type == "cpu" for one in _parameters(optimizer.param_groups))


class SamplerStateHandler(StateHandler):
    """An ElasticSampler."""


_registry: list[tuple[Any, type[StateHandler]]] = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> list[tuple[Any, type[StateHandler]]]:
    """(class, handler) for the kinds of objects that a TorchState keeps by a handler."""
    return list(_registry)


def set_handler_registry(registry: Iterable[tuple[Any, type[StateHandler]]]) -> None:
    """Replaces these kinds, for states that are made from now on. The first class of which an object
    is an instance counts. Fails: TypeError (a handler is no subclass of StateHandler)."""
    pairs = [(kind, handler) for kind, handler in registry]
    for _, handler in pairs:
        if not (isinstance(handler, type) and issubclass(handler, StateHandler)):
            raise TypeError(f"handler {handler!r} is no subclass of StateHandler")
    _registry[:] = pairs


def handler_of(value: Any) -> StateHandler | None:
    """The handler for a value; None for a plain object."""
    for kind, handler in _registry:
        if isinstance(value, kind):
            return handler(value)
    has_state = hasattr(value, "state_dict") and hasattr(value, "load_state_dict")
    return StateHandler(value) if has_state else None
