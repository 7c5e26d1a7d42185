# SPDX-License-Identifier: Apache-2.0
"""Loads horo._fastpath, the extension module that makes the frequent calls of libhoro without ctypes.

`module` is None without it, and `absence` says why. The package then makes the same calls by ctypes,
with the same results and the same errors.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any, Optional

from horo import _native
from horo._arguments import BY_KNOBS

NAME = "horo._fastpath"
FILE = "horo-fastpath.abi3.so"
INTERFACE = 5  # kInterface of the module; another number belongs to another release
_FUNCTIONS = (
    "horo_declare",
    "horo_submit",
    "horo_submit_with",
    "horo_submit_all",
    "horo_poll",
    "horo_await",
    "horo_await_all",
    "horo_release",
    "horo_wait_stream",
)


def path() -> str:
    """Where the module lies: in the folder horo/ beside libhoro, like the backends."""
    return os.path.join(os.path.dirname(os.path.realpath(_native.path)), "horo", FILE)


def _unsuitable() -> Optional[str]:
    """Why this interpreter must not load a module of CPython's stable ABI; None if it may."""
    if os.environ.get("HORO_CTYPES", "0") not in ("", "0"):
        return "HORO_CTYPES is set"
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    if "t" in getattr(sys, "abiflags", ""):
        return "free-threaded Python has no stable ABI"
    if hasattr(sys, "getobjects"):
        return "this Python was built with Py_TRACE_REFS"
    return None


def _load() -> tuple[Any, str]:
    """(the module, "") or (None, the reason)."""
    reason, place = _unsuitable(), path()
    if reason is not None:
        return None, reason
    if not os.path.exists(place):
        return None, f"there is no {place}"
    try:
        loader = importlib.machinery.ExtensionFileLoader(NAME, place)
        spec = importlib.util.spec_from_file_location(NAME, place, loader=loader)
        if spec is None:
            return None, f"{place} cannot be loaded"
        loaded = importlib.util.module_from_spec(spec)
        loader.exec_module(loaded)
    except ImportError as error:
        return None, str(error)
    found = getattr(loaded, "INTERFACE", None)
    if found != INTERFACE:
        return None, f"{place} is of another release: it has interface {found}, not {INTERFACE}"
    return loaded, ""


def _address(name):
    blocks = name.startswith(("horo_await", "horo_wait_stream"))
    function = getattr(_native.slow if blocks else _native.fast, name)
    return ctypes.cast(function, ctypes.c_void_p).value


def connect(handles: dict[str, Any]) -> None:
    """Gives the module libhoro's functions and the names of horo._handles."""
    module.connect({name: _address(name) for name in _FUNCTIONS}, handles, BY_KNOBS)


module, absence = _load()
