# SPDX-License-Identifier: Apache-2.0
"""Makes process groups for torch.distributed: what init_process_group("horo") and new_group() call."""

from __future__ import annotations

import sys
from types import FrameType

import torch
from torch.distributed import distributed_c10d as c10d

from horo.torch.distributed import _domain
from horo.torch.distributed._group import HoroProcessGroup
from horo.torch.distributed._state import State


def create(options, _backend_options=None):
    """The extended form of a backend's creator. Fails: StartError, ValueError."""
    store, rank, size = options.store, options.group_rank, options.group_size
    timeout_s = options.timeout.total_seconds()
    ranks = list(options.global_ranks_in_group)
    domain, owns = _domain_for(options, ranks, timeout_s)
    if not ranks or owns:
        ranks = list(range(size))
    if ranks != sorted(ranks):
        raise ValueError(f"horo: ranks {ranks} of a group must be in ascending order")
    state = State(domain, str(options.group_id), ranks, rank, timeout_s, owns)
    return HoroProcessGroup(store, state, _others(options))


def _domain_for(options, ranks, timeout_s):
    """(the job, whether the group that is being made begins it)."""
    store, rank, size = options.store, options.group_rank, options.group_size
    if not ranks or _domain.current is None:
        if ranks and len(ranks) != c10d.get_world_size():
            raise ValueError(
                f'horo: a group of {size} of {c10d.get_world_size()} ranks needs the backend horo in the default '
                'group, too: init_process_group("cpu:horo,cuda:nccl")'
            )
        return _domain.open_default(store, rank, size, timeout_s), True
    return _domain.current, False


def _others(options):
    """The groups for other devices than the CPU, in a backend such as "cpu:horo,cuda:nccl". torch makes
    none of them itself once it has a process group written in Python. A program that names a backend for GPUs
    runs also where there are none."""
    config = _config()
    named = {device: str(name) for device, name in config.items() if str(name).lower() != "horo"}
    if not torch.cuda.is_available():
        named.pop("cuda", None)  # there are no tensors that would need it
    if not named:
        return {}
    text = ",".join(f"{device}:{name}" for device, name in named.items())
    group, _ = c10d._new_process_group_helper(
        options.group_size,
        options.group_rank,
        list(options.global_ranks_in_group),
        c10d.Backend(text),
        options.store,
        group_name=_name_for_others(options.group_id),
        timeout=options.timeout,
    )
    return dict.fromkeys(named, group)


def _name_for_others(name):
    made = f"{name}.others"
    kind = getattr(c10d, "GroupName", str)
    return kind(made)


def _config():
    """Device -> backend of the group that torch is making; only torch's own function knows it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        config = frame.f_locals.get("backend_config")
        if frame.f_code.co_name == "_new_process_group_helper" and config is not None:
            return config.get_device_backend_map()
        frame = frame.f_back
    return {}
