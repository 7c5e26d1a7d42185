# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer with op=Adasum: every rank steps alone, and what the steps changed is
combined."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import torch

from horo import _core
from horo.torch._agreement import names_of
from horo.torch._collectives import start_allreduce
from horo.torch._copies import Copied, class_of


class _Update:
    """What one step changes of one parameter, on its way."""

    def __init__(self, parameter, name):
        self.parameter = parameter
        self.name = name
        self.start: Any = None
        self.handle = 0

    def begin(self):
        self.start = self.parameter.detach().clone()

    def submit(self, names, compression):
        change = self.parameter.detach() - self.start
        part, self.context = compression.compress(change)
        part = part.contiguous()
        self.handle = start_allreduce(part, part, names, self.name, _core.ADASUM, 1.0, 1.0)

    def finish(self, compression):
        change = compression.decompress(_core.synchronize(self.handle), self.context)
        with torch.no_grad():
            self.parameter.copy_(self.start.add_(change))
        self.start = None


class _AdasumDistributed(Copied):
    """Goes in front of an optimizer's class; shares the original's groups and state."""

    def _horo_setup(self, named, plan, agreement):
        """`named`: (parameter, name) pairs. `agreement`: of the ranks on the parameters; None where nothing is combined."""
        self._horo_plan = plan
        self._horo_agreement = agreement
        self._horo_updates = []
        self._horo_reduces_nothing = agreement is None
        self._horo_watch(named)

    def _horo_watch(self, named):
        if not self._horo_reduces_nothing:
            self._horo_updates += [_Update(parameter, name) for parameter, name in named]

    def add_param_group(self, *args, **kwargs):
        """As the optimizer's own, on all ranks; the group's steps are combined too."""
        super().add_param_group(*args, **kwargs)
        self._horo_watch(names_of(self.param_groups[-1:], None, self._horo_plan.names))

    def set_backward_passes_per_step(self, passes):
        """Gradients add up until step(), however many backwards there are."""
        if passes <= 0:
            raise ValueError(f"backward_passes_per_step is {passes}; it must be 1 or more")

    def synchronize(self):
        """Nothing: gradients stay each rank's own; step() combines what it changes."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        """AssertionError: there is nothing to skip."""
        raise AssertionError(
            "skip_synchronize() is not for op=Adasum: gradients are not reduced, the steps are"
        )
        yield

    def step(self, closure=None):
        """Steps, and combines the ranks' steps by Adasum."""
        updates = [update for update in self._horo_updates if update.parameter.requires_grad]
        compression = self._horo_plan.compression
        if self._horo_agreement is not None:
            self._horo_agreement.require()
        for update in updates:
            update.begin()
        loss = super().step(closure)
        for update in updates:
            update.submit(self._horo_plan.names, compression)
        for update in updates:
            update.finish(compression)
        return loss

    # The base's own step runs the hooks that a user registers.
    step.hooked = True  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=None)
def class_over(base):
    return class_of(_AdasumDistributed, class_over, base)
