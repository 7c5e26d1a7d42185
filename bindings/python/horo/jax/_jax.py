# SPDX-License-Identifier: Apache-2.0
"""Imports jax, or says what to do; and the parts of jax that are not public, in this one place."""

from __future__ import annotations

import functools
import inspect

OLDEST = (0, 4, 38)
ASYNC_FROM = (0, 6, 2)  # earlier ones crash when a call ends later than its handler

try:
    import jax
    import jaxlib
except ImportError as error:
    raise ImportError(
        f"horo.jax needs jax and jaxlib 0.4.38 or later: pip install jax ({error})"
    ) from error


def numbers(version: str) -> tuple[int, ...]:
    """(0, 4, 38) for "0.4.38.dev2"."""
    parts = []
    for part in version.split(".")[:3]:
        digits = "".join(letter for letter in part if letter.isdigit())
        parts.append(int(digits or 0))
    return tuple(parts)


JAXLIB = numbers(jaxlib.__version__)
for _name, _version in (("jax", jax.__version__), ("jaxlib", jaxlib.__version__)):
    if numbers(_version) < OLDEST:
        raise ImportError(
            f"horo.jax needs {_name} 0.4.38 or later, and this is {_version}: "
            "pip install --upgrade jax jaxlib"
        )

try:
    from jax._src import effects
    from jax._src.core import Primitive  # jax.extend.core has it, but imports pallas and more
    from jax._src.dispatch import runtime_tokens
    from jax._src.interpreters import mlir
    from jax.interpreters import ad, batching
    from jaxlib.mlir import ir

    custom_call, TokenSet = mlir.custom_call, mlir.TokenSet
    # Newer versions otherwise make one function of all equal calls, which hides where each stands.
    _inline = "cacheable" in inspect.signature(mlir.register_lowering).parameters
    register_lowering = functools.partial(
        mlir.register_lowering, **({"cacheable": False} if _inline else {})
    )
    try:
        from jax.ffi import pycapsule, register_ffi_target
    except ImportError:  # before 0.5.0
        from jax.extend.ffi import pycapsule, register_ffi_target
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"horo.jax does not know jax {jax.__version__}, whose interfaces have changed ({error}); "
        "install a version that Horo's documentation lists, or a newer Horo"
    ) from error

Tracer = jax.core.Tracer


def ir_type(context, aval):
    """The type of an array in a program, within a lowering rule."""
    try:
        return mlir.aval_to_ir_type(context.module_context, aval)
    except TypeError:  # before 0.10
        return mlir.aval_to_ir_type(aval)


__all__ = [
    "ad",
    "ASYNC_FROM",
    "batching",
    "custom_call",
    "effects",
    "ir",
    "ir_type",
    "jax",
    "JAXLIB",
    "Primitive",
    "pycapsule",
    "register_ffi_target",
    "register_lowering",
    "runtime_tokens",
    "TokenSet",
    "Tracer",
]
