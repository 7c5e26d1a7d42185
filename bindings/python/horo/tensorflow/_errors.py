# SPDX-License-Identifier: Apache-2.0
"""Turns TensorFlow's errors that come from Horo's ops into Horo's own."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, TypeVar

import tensorflow as tf

from horo import _failures

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Function = TypeVar("Function", bound="Callable[..., Any]")


def not_converted(function: Function) -> Function:
    """Marks a function that AutoGraph must not rewrite where a tf.function calls it."""
    marked: Function = tf.autograph.experimental.do_not_convert(function)
    return marked


_PAYLOAD = "horo"  # the module puts the facts of a failure there


def as_horo(error: BaseException) -> BaseException | None:
    """Horo's exception for an error of TensorFlow; None when it does not come from Horo's ops."""
    payloads = getattr(error, "experimental_payloads", None) or {}
    fields = payloads.get(_PAYLOAD) or payloads.get(_PAYLOAD.encode())
    if fields is None:
        return None
    text = fields.decode(errors="replace") if isinstance(fields, bytes) else str(fields)
    return _failures.parsed(text)


@contextlib.contextmanager
def translated():
    """Inside, errors of Horo's ops are raised as Horo's exceptions."""
    try:
        yield
    except tf.errors.OpError as error:
        known = as_horo(error)
        if known is None:
            raise
        raise known from None


def translating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function of the user in which Horo's ops run."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with translated():
            return function(*args, **kwargs)

    return wrapper
