# SPDX-License-Identifier: Apache-2.0
"""The process group that torch.distributed sees.

Every method of torch's ProcessGroup is here, under the names of all its versions, or raises. Nothing is
handed to another backend, except tensors of devices that the user has given one ("cpu:horo,cuda:nccl").
"""

from __future__ import annotations

import torch
from torch.distributed import ProcessGroup

from horo import errors
from horo.torch.distributed import _versions
from horo.torch.distributed._methods import METHODS
from horo.torch.distributed._state import State
from horo.torch.distributed._work import HoroWork

CPU = torch.device("cpu")


class HoroProcessGroup(ProcessGroup):
    """Its collectives are those of _methods.py. Thread: any, but collectives of one group must start in
    one order on all ranks."""

    def __init__(self, store, state, others=None):
        """`others`: device type -> ProcessGroup, for tensors of other devices than the CPU."""
        super().__init__(state.rank(), state.size())
        self.state = state
        self.others = others or {}
        self.coalesced = None  # works since _start_coalescing()
        self._store = store
        self._desc = "undefined"
        self._sequence = 0

    # -- Identity --------------------------------------------------------------------------------

    def getBackendName(self):
        return "horo"

    name = _get_backend_name = getBackendName

    def rank(self):
        return self.state.rank()

    def size(self):
        return self.state.size()

    getRank, getSize = rank, size

    def getGroupName(self):
        return self.state.names.group

    group_name = property(getGroupName)

    def setGroupName(self, name):
        if name != self.group_name:
            raise ValueError(f"horo: process group '{self.group_name}' cannot be renamed to '{name}'")

    _set_group_name = setGroupName

    def getGroupDesc(self):
        return self._desc

    group_desc = property(getGroupDesc)

    def setGroupDesc(self, text):
        self._desc = text

    _set_group_desc = setGroupDesc

    @property
    def _device_types(self):
        return [CPU, *map(torch.device, self.others)]

    def _get_backend(self, device):
        """The part that moves tensors of a device: this group itself for those of the CPU."""
        kind = torch.device(device).type
        if kind == "cpu":
            return self
        if kind in self.others:
            return self.others[kind]._get_backend(device)
        raise RuntimeError(
            f"horo: process group '{self.group_name}' has no backend for tensors of {kind}; give one with "
            f'init_process_group("cpu:horo,{kind}:BACKEND")'
        )

    def get_group_store(self):
        return self._store

    def _has_hooks(self):
        return False

    def _wait_for_pending_works(self):
        """Hooks of C++ works do not exist here, so there is nothing to wait for."""

    def _set_sequence_number_for_group(self):
        self._sequence = 0

    def _get_sequence_number_for_group(self):
        return self._sequence

    def count(self, work):
        """Notes a work that a method has begun, and returns it."""
        self._sequence += 1
        if self.coalesced is not None:
            self.coalesced.append(work)
        return self.state.keep(work)

    # torch asks a backend for these.
    supports_splitting = True
    supports_coalescing = True
    supports_shrinking = False
    supports_time_estimate = False

    def supports_tensor_alloc(self, device):
        return torch.device(device).type == "cpu"

    def allocate_tensor(self, size, *, dtype, device):
        """A flat tensor in the memory that the ranks of a host share. Fails: ResourceError."""
        from horo.torch._memory import shared_empty

        return shared_empty(size, dtype)

    # -- Other groups ----------------------------------------------------------------------------

    def split_group(self, ranks, timeout=None, opts=None, group_name=None, group_desc=None, *_):
        """The group of some ranks of this one; None on a rank that is not among them. Only members need
        to call it."""
        ranks = sorted(ranks)
        if self.rank() not in ranks:
            return None
        limit = timeout.total_seconds() if timeout else self.state.timeout_s
        members = [self.state.ranks[rank] for rank in ranks]
        name = group_name or f"{self.group_name}:split:{'.'.join(map(str, ranks))}"
        state = State(self.state.domain, name, members, ranks.index(self.rank()), limit)
        split = HoroProcessGroup(self._store, state)
        split.setGroupDesc(group_desc or "undefined")
        return split

    def splitGroup(self, ranks, timeout, opts, group_name, group_desc, devices=None):
        return self.split_group(ranks, timeout, opts, group_name, group_desc)

    # -- Ends ------------------------------------------------------------------------------------

    def shutdown(self):
        """Called by destroy_process_group(). The default group's end is the job's."""
        for other in self.others.values():
            other.shutdown()
        self.state.close()

    def abort(self):
        """All that waits ends with a ShutDownError, and so does all that begins later."""
        for other in self.others.values():
            other.abort()
        self.state.abort(errors.ShutDownError(f"horo: process group '{self.group_name}' was aborted"))

    def set_timeout(self, timeout):
        self.state.timeout_s = timeout.total_seconds()


def _unsupported(name):
    def method(self, *_, **__):
        raise NotImplementedError(f"horo: ProcessGroup.{name}() is not supported by the backend horo")

    method.__name__ = name
    return method


# Members of torch's class that need no backend.
_OF_THE_BASE = {"boxed", "unbox", "_pybind11_conduit_v1_", "BackendType"}


def _complete(group_class):
    """Gives the class METHODS, and methods that raise for all others of torch's class."""
    for name, method in METHODS.items():
        setattr(group_class, name, method)
    for name, inherited in vars(ProcessGroup).items():
        known = name in vars(group_class) or name in _OF_THE_BASE or name.startswith("__")
        if not known and callable(inherited):
            setattr(group_class, name, _unsupported(name))


_complete(HoroProcessGroup)
_versions.hide_from_compiler(HoroProcessGroup, HoroWork)
