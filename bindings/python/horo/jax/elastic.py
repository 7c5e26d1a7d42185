# SPDX-License-Identifier: Apache-2.0
"""Elastic trainings with JAX.

    state = horo.elastic.JaxState(params=params, opt_state=opt_state, step=0)

    @horo.elastic.run
    def train(state):
        while state.step < steps:
            state.params, state.opt_state = step(state.params, state.opt_state, batch())
            state.step += 1
            state.commit()

    train(state)

After a loss, and on ranks that come, the training continues from the last commit().
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from horo import errors
from horo._elastic.generation import generation, is_elastic, pending_change, survivors
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.loop import run as _run
from horo._elastic.loop import run_fn
from horo._elastic.state import ObjectState, State
from horo.jax import _ffi
from horo.jax._jax import jax

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ERRORS = (errors.PeerLostError, errors.ShutDownError, errors.RemovedError)


def _on_its_own(leaf):
    """A copy that a step which donates its arguments cannot take away."""
    return leaf.copy() if isinstance(leaf, jax.Array) else leaf


class JaxState(ObjectState):
    """The state of a training: pytrees of arrays, and any other Python values. Each keyword becomes
    an attribute of the same name. commit() copies the arrays."""

    def _copies(self):
        values = {name: getattr(self, name) for name in self._names}
        return jax.tree_util.tree_map(_on_its_own, values)

    def restore(self) -> None:
        """Goes back to the values of the last save() or commit()."""
        for name, value in jax.tree_util.tree_map(_on_its_own, self._saved).items():
            setattr(self, name, value)

    def reset(self) -> None:
        """Forgets compiled programs, which may be made for another number of ranks."""
        _ffi.forget()
        jax.clear_caches()


def _with_errors_of_horo(func):
    """`func`, with the errors of horo in place of those that jax makes of them."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        before = _ffi.failures()
        try:
            return jax.block_until_ready(func(*args, **kwargs))
        except jax.errors.JaxRuntimeError as error:
            made = _ffi.last_failure() if _ffi.failures() != before else None
            if not isinstance(made, _ERRORS):
                raise
            raise made from error

    return wrapper


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a training function whose first argument is a State. It starts the function
    again when the members of the job have changed, with the state of the last commit()."""
    return _run(_with_errors_of_horo(func))


__all__ = [
    "generation",
    "HostsUpdatedInterrupt",
    "is_elastic",
    "JaxState",
    "ObjectState",
    "pending_change",
    "run",
    "run_fn",
    "State",
    "survivors",
]
