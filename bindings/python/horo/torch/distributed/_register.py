# SPDX-License-Identifier: Apache-2.0
"""Makes the backend known to torch.distributed."""

from __future__ import annotations

import functools
import sys
from typing import Any

from torch.distributed import distributed_c10d as c10d

from horo import _torch_backend
from horo.torch.distributed import _versions
from horo.torch.distributed._early import meet_first

NAME = _torch_backend.NAME


def _create(options, backend_options=None):
    from horo.torch.distributed import _creator

    return _creator.create(options, backend_options)


def register() -> None:
    """Registers the backend. A second call does nothing."""
    if NAME.upper() in getattr(c10d.Backend, "_plugins", {}):
        return
    default = getattr(c10d.Backend, "default_device_backend_map", {}).get("cpu")
    _versions.register(c10d.Backend, NAME, _create, ["cpu"])
    if default is not None:
        c10d.Backend.default_device_backend_map["cpu"] = default
    _allow_monitored_barrier()
    _make_ranks_meet()


def _replace(theirs, ours):
    """Puts a function in the place of torch's."""
    package: Any = sys.modules.get("torch.distributed")
    name = theirs.__name__
    setattr(c10d, name, ours)
    if getattr(package, name, None) is theirs:
        setattr(package, name, ours)


def _make_ranks_meet():
    """Groups of the ranks of `horo run` meet in Horo before they use torch's store."""
    theirs = c10d.init_process_group

    @functools.wraps(theirs)
    def init_process_group(*arguments, **options):
        backend = arguments[0] if arguments else options.get("backend")
        if has_horo(backend):
            backend = _torch_backend.horo_first(backend)
            arguments, options = _torch_backend.with_backend(backend, 0, arguments, options)
            meet_first(theirs, arguments, options)
        return theirs(*arguments, **options)

    _replace(theirs, init_process_group)


def has_horo(backend):
    """Whether the backend of a call is horo, or has it, as "cpu:horo,cuda:nccl" does."""
    return NAME in str(backend).lower().replace(":", ",").split(",")


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

    _replace(theirs, monitored_barrier)


def replace_gloo() -> None:
    """From now on, programs of this process that ask torch.distributed for gloo, or for no backend, get
    horo. One line on standard error says so when it happens first."""
    register()
    _torch_backend.replace(c10d)
