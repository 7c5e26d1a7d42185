# SPDX-License-Identifier: Apache-2.0
"""Names of call sites. They are the same on all ranks, whatever order the ranks trace in."""

from __future__ import annotations

import sys
from types import FrameType

_OURS = ("horo.", "jax.", "jaxlib.")


def here() -> str:
    """The place in the user's program that called horo, as "module.function:line"."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "?")
        if not (module + ".").startswith(_OURS):
            break
        frame = frame.f_back
    if frame is None:
        return "call"
    code = frame.f_code
    function = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
    return f"{module}.{function}:{frame.f_lineno}"


def site(name: str | None) -> str:
    """The user's name, or that of the call site. Fails: ValueError."""
    if name is None:
        return here()
    if "\0" in name:  # C would cut the name there
        raise ValueError(f"name {name!r} contains a null character")
    return name
