# SPDX-License-Identifier: Apache-2.0
"""Makes the backend known to torch.distributed."""

from __future__ import annotations

import functools
import sys

from torch.distributed import distributed_c10d as c10d

from horo.torch.distributed import _versions

NAME = "horo"


def _create(options, backend_options=None):
    from horo.torch.distributed import _creator

    return _creator.create(options, backend_options)


def register():
    """Registers the backend. A second call does nothing."""
    if NAME.upper() in getattr(c10d.Backend, "_plugins", {}):
        return
    default = getattr(c10d.Backend, "default_device_backend_map", {}).get("cpu")
    _versions.register(c10d.Backend, NAME, _create, ["cpu"])
    if default is not None:
        c10d.Backend.default_device_backend_map["cpu"] = default
    _allow_monitored_barrier()


def _allow_monitored_barrier():
    """torch's function refuses every backend but gloo."""
    theirs = c10d.monitored_barrier

    @functools.wraps(theirs)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        found = group if group is not None else c10d._get_default_group()
        state = getattr(found, "state", None)
        if state is None:
            return theirs(group, timeout, wait_all_ranks)
        if isinstance(timeout, (int, float)):
            import datetime

            timeout = datetime.timedelta(seconds=timeout)
        return found.monitored_barrier(timeout, wait_all_ranks)

    c10d.monitored_barrier = monitored_barrier
    package = sys.modules.get("torch.distributed")
    if getattr(package, "monitored_barrier", None) is theirs:
        package.monitored_barrier = monitored_barrier


# -- Programs that ask for gloo --------------------------------------------------------------------


def _instead(backend):
    """The backend for a program that asks for `backend`, or None when it stays."""
    import torch

    if backend is None or str(backend).lower() == "undefined":
        return "cpu:horo,cuda:nccl" if torch.cuda.is_available() else NAME
    parts = str(backend).lower().split(",")
    replaced = [":".join(NAME if word == "gloo" else word for word in part.split(":")) for part in parts]
    return ",".join(replaced) if replaced != parts else None


def _replacing(function, position, tell):
    @functools.wraps(function)
    def wrapped(*arguments, **options):
        asked = arguments[position] if len(arguments) > position else options.get("backend")
        given = _instead(asked)
        if given is None:
            return function(*arguments, **options)
        tell(asked)
        if len(arguments) > position:
            arguments = (*arguments[:position], given, *arguments[position + 1 :])
        else:
            options["backend"] = given
        return function(*arguments, **options)

    return wrapped


def replace_gloo():
    """From now on, programs of this process that ask torch.distributed for gloo, or for no backend, get
    horo. One line on standard error says so, when it happens first, on the first rank of the host."""
    register()
    told = []

    def tell(asked):
        import os

        if not told and os.environ.get("LOCAL_RANK", "0") == "0":
            print(f"horo: torch.distributed uses the backend horo instead of {asked or 'the default'} "
                  "(--torch-backend horo)", file=sys.stderr, flush=True)
        told.append(asked)

    package = sys.modules.get("torch.distributed")
    for name, position in (("init_process_group", 0), ("new_group", 2)):
        theirs = getattr(c10d, name)
        ours = _replacing(theirs, position, tell)
        setattr(c10d, name, ours)
        if getattr(package, name, None) is theirs:
            setattr(package, name, ours)
