# SPDX-License-Identifier: Apache-2.0
"""What copy and pickle make of a distributed optimizer: its class, groups and state, to look at and
to take state_dict() from. What reduces gradients belongs to the model of the original."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

# The class comes in front of an optimizer's, which mypy shall know.
_Base: Any = torch.optim.Optimizer if TYPE_CHECKING else object


@contextlib.contextmanager
def dicts_kept(optimizer):
    """What is loaded inside goes into the dicts that are there: schedulers hold the groups' dicts,
    and so does the optimizer that a distributed one was made of."""
    groups, state = optimizer.param_groups, optimizer.state
    yield
    for old, new in zip(groups, optimizer.param_groups):
        if old is not new:
            old.clear()
            old.update(new)
    if optimizer.state is not state:
        state.clear()
        state.update(optimizer.state)
    optimizer.param_groups, optimizer.state = groups, state


class Copied(_Base):
    """Goes in front of an optimizer's class; a class made so has `_horo_made_by`: the function that
    makes it, and the optimizer's class."""

    def __reduce_ex__(self, protocol):
        return _blank, type(self)._horo_made_by, self.__getstate__()

    def load_state_dict(self, *args, **kwargs):
        """As the optimizer's own; the original has what was loaded, too."""
        with dicts_kept(self):
            return super().load_state_dict(*args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("_horo_"):
            raise RuntimeError(
                "this is a copy of a DistributedOptimizer, which reduces nothing: make a new one "
                "from an optimizer over the copied model, and load state_dict() of this into it"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _blank(class_over, base):
    return object.__new__(class_over(base))


def class_of(kind, class_over, base):
    """The class of a distributed optimizer: `kind` in front of `base`; class_over(base) gives it."""
    body = {"__module__": base.__module__, "_horo_made_by": (class_over, base)}
    return type(base.__name__, (kind, base), body)
