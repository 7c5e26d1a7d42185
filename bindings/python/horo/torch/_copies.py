# SPDX-License-Identifier: Apache-2.0
"""Copies of a distributed optimizer, made by copy or pickle. They have its class, groups and state,
so that state_dict() works. They reduce nothing: the hooks belong to the original's model."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

# At run time the other base is an optimizer's class; mypy sees torch's base class.
_Base: Any = torch.optim.Optimizer if TYPE_CHECKING else object


@contextlib.contextmanager
def dicts_kept(optimizer):
    """State that is loaded inside goes into the existing dicts. Schedulers hold the dicts of the
    groups, and so does the optimizer that a distributed one was made of."""
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
    """Comes before an optimizer's class. A class made by class_of() has `_horo_made_by`: the function
    that makes it, and the optimizer's class."""

    def __reduce_ex__(self, protocol):
        return _blank, type(self)._horo_made_by, self.__getstate__()

    def load_state_dict(self, *args, **kwargs):
        """Like the optimizer's own. The original has the loaded state, too."""
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
    """The class of a distributed optimizer: `kind` before `base`. class_over(base) returns it."""
    body = {"__module__": base.__module__, "_horo_made_by": (class_over, base)}
    return type(base.__name__, (kind, base), body)
