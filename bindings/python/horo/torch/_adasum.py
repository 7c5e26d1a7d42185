# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer with op=Adasum: every rank steps by its own gradients, and the changes that
the steps make are combined."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import torch

from horo._arguments import ADASUM
from horo._handles import synchronize
from horo._optimizer.agreement import names_of
from horo._optimizer.reducer import compare, whole_passes
from horo.torch._copies import Copied, class_of
from horo.torch._face import TORCH
from horo.torch._gradients import describe


class _Update:
    """The change that one step makes to one parameter."""

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
        self.handle = TORCH.start_allreduce(part, part, names, self.name, ADASUM, 1.0, 1.0)

    def finish(self, compression):
        change = compression.decompress(synchronize(self.handle), self.context)
        with torch.no_grad():
            self.parameter.copy_(self.start.add_(change))
        self.start = None


class _AdasumDistributed(Copied):
    """Comes before an optimizer's class; shares the original's groups and state."""

    def _horo_setup(self, plan, named, passes, groups, process_set):
        """`named`: (parameter, name) pairs. `passes` and `groups` have no effect."""
        del passes, groups
        self._horo_plan = plan
        self._horo_names = dict(named)
        self._horo_updates = []
        self._horo_agreement: Any = None  # None where nothing is combined
        if plan.names.member and plan.names.size() > 1:
            trained = [(name, one) for one, name in named if one.requires_grad]
            self._horo_agreement = compare(plan.names, process_set, describe(trained))
            self._horo_watch(named)

    def _horo_watch(self, named):
        self._horo_updates += [_Update(parameter, name) for parameter, name in named]

    def add_param_group(self, *args, **kwargs):
        """Like the optimizer's own, on all ranks. The group's steps are combined too."""
        super().add_param_group(*args, **kwargs)
        named = names_of(self.param_groups[-1:], None, self._horo_plan.names)
        self._horo_names.update(named)
        if self._horo_agreement is not None:
            self._horo_watch(named)

    @property
    def _parameter_names(self):
        """The name of each parameter, as programs written for Horovod read it."""
        return self._horo_names

    def set_backward_passes_per_step(self, passes):
        """Has no effect: gradients add up until step(), however many backwards there are."""
        whole_passes(passes)

    def synchronize(self):
        """Does nothing: gradients stay each rank's own, and step() combines its changes."""

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
