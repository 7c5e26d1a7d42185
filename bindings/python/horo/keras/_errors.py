# SPDX-License-Identifier: Apache-2.0
"""Finds Horo's exception behind an error of a framework that runs compiled code."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def as_horo(error: BaseException) -> BaseException | None:
    """Horo's exception behind an error of TensorFlow or JAX; None when there is none."""
    tensorflow, jax = (sys.modules.get(name) for name in ("horo.tensorflow._errors", "horo.keras._jax"))
    found = tensorflow.as_horo(error) if tensorflow is not None else None
    if found is None and jax is not None:
        found = jax.as_horo(error)
    return found


def translating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function of the user in which a framework runs Horo's collectives."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            known = as_horo(error)
            if known is None:
                raise
            raise known from None

    return wrapper
