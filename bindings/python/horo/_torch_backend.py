# SPDX-License-Identifier: Apache-2.0
"""Gives the backend `horo` to programs that ask torch.distributed for gloo, or for no backend.

This module imports no torch: it is ready before the program imports it.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from typing import Any

NAME = "horo"
_C10D = "torch.distributed.distributed_c10d"

_told: list[str] = []


def instead_of(asked, has_cuda):
    """The backend for a program that asks for `asked`, or None when that stays."""
    text = str(asked).lower()
    if asked is None or text == "undefined":
        return f"cpu:{NAME},cuda:nccl" if has_cuda() else NAME
    words = [part.split(":") for part in text.split(",")]
    replaced = ",".join(":".join(NAME if word == "gloo" else word for word in part) for part in words)
    return horo_first(replaced) if replaced != text else None


def horo_first(backend):
    """A backend such as "cuda:nccl,cpu:horo" with horo's part first: torch makes the parts in their order, and
    horo's makes those that come after it."""
    parts = str(backend).split(",")
    return ",".join(sorted(parts, key=lambda part: part.strip().lower().rpartition(":")[2] != NAME))


def _has_cuda():
    import torch

    return torch.cuda.is_available()


def _tell(asked):
    """One line, on the first rank of each host."""
    if not _told and os.environ.get("LOCAL_RANK", "0") == "0":
        words = f"instead of {asked}" if asked is not None else "as its default"
        print(
            f"horo: torch.distributed uses the backend horo {words}, because of --torch-backend horo",
            file=sys.stderr,
            flush=True,
        )
    _told.append(str(asked))


def with_backend(backend, position, arguments, options):
    """(arguments, options) of a call with another backend, whose position among the arguments this is."""
    if len(arguments) > position:
        return (*arguments[:position], backend, *arguments[position + 1 :]), options
    return arguments, {**options, "backend": backend}


def _replacing(function, position, makes_default):
    """`function` with the argument `backend`, which has this position, replaced. `makes_default`: it makes
    the default group, with a backend of torch's choice if it is given none."""

    @functools.wraps(function)
    def wrapped(*arguments, **options):
        asked = arguments[position] if len(arguments) > position else options.get("backend")
        backend = instead_of(asked, _has_cuda) if asked is not None or makes_default else None
        if backend is not None:
            from horo.torch.distributed._early import meet_first  # the package makes the backend known

            _tell(asked)
            arguments, options = with_backend(backend, position, arguments, options)
            if makes_default:
                meet_first(function, arguments, options)
        return function(*arguments, **options)

    return wrapped


def replace(c10d):
    """From now on, init_process_group() and new_group() of torch's module use horo instead of gloo."""
    package = sys.modules.get("torch.distributed")
    # new_group() without a backend uses that of the default group.
    for name, position, makes_default in (("init_process_group", 0, True), ("new_group", 2, False)):
        theirs = getattr(c10d, name)
        ours = _replacing(theirs, position, makes_default)
        setattr(c10d, name, ours)
        if getattr(package, name, None) is theirs:
            setattr(package, name, ours)


class _Finder:
    """Calls replace() once torch's module has been loaded, before any other module sees it."""

    def find_spec(self, name, path=None, target=None):
        if name != _C10D:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            replace(module)

        loader.exec_module = exec_module
        return spec


def replace_when_imported():
    """replace(), now or when the program imports torch.distributed."""
    if _C10D in sys.modules:
        replace(sys.modules[_C10D])
    else:
        sys.meta_path.insert(0, _Finder())
