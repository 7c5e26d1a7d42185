# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer with op=Adasum: every rank steps by its own gradients, and the changes that
the steps make are combined."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import torch

from horo import _job, errors
from horo._arguments import ADASUM
from horo._elastic.generation import is_elastic
from horo._handles import synchronize
from horo._optimizer.agreement import names_of
from horo._optimizer.reducer import Progress, compare, whole_passes
from horo._sets import WORLD
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
            self.parameter.copy_(self.start).add_(change)

    def take_back(self):
        """Undoes the step, whose changes could not be combined."""
        with torch.no_grad():
            self.parameter.copy_(self.start)


class _Combination(Progress):
    """The changes of all parameters by one step, until they are combined."""

    def __init__(self):
        super().__init__(passes=1)
        self.updates = []
        self._unfinished = False

    def within_step(self):
        """Whether the last step could not be combined."""
        return self._unfinished and not self.stale

    def generation_ended(self):
        """The step is repeated from its beginning, with gradients of its own."""
        if self.within_step():
            for update in self.updates:
                update.parameter.grad = None
        self.stale, self._unfinished = True, False

    def combine(self, step, closure, names, compression):
        """Steps, and combines the ranks' changes. After a failure all parameters are as before."""
        updates = [update for update in self.updates if update.parameter.requires_grad]
        self._unfinished = True
        for update in updates:
            update.begin()
        try:
            loss = step(closure)
            for update in updates:
                update.submit(names, compression)
            for update in updates:
                update.finish(compression)
        except errors.HoroError:
            for update in updates:
                update.take_back()
            self.torn = False
            raise
        for update in updates:
            update.start = None
        self._unfinished = False
        return loss


class _AdasumDistributed(Copied):
    """Comes before an optimizer's class; shares the original's groups and state."""

    def _horo_setup(self, plan, named, passes, groups, process_set):
        """`named`: (parameter, name) pairs. `passes` and `groups` have no effect."""
        del passes, groups
        self._horo_plan = plan
        self._horo_names = dict(named)
        self._horo_reducer = _Combination()
        self._horo_reducer.renews_by(self._horo_renew)
        self._horo_agreement: Any = None  # None where nothing is combined
        self._horo_comparison: Any = None  # arguments of compare()
        if plan.names.member and (plan.names.size() > 1 or is_elastic()):
            trained = [(name, one) for one, name in named if one.requires_grad]
            number = next(plan.names.optimizers)
            self._horo_comparison = (process_set, describe(trained), number)
            # Before the process joins the job, it can compare nothing: it does so in its first step.
            self._horo_reducer.stale = _job.is_planned()
            if not self._horo_reducer.stale:
                self._horo_agreement = compare(plan.names, *self._horo_comparison)
            self._horo_watch(named)

    def _horo_watch(self, named):
        self._horo_reducer.updates += [_Update(parameter, name) for parameter, name in named]

    def _horo_renew(self):
        """The ranks of a job that was initialised again compare their parameters again."""
        if self._horo_comparison is None:
            return
        if self._horo_plan.names is not WORLD:
            raise ValueError(
                "this optimizer combines the steps of a process set that ended with the last "
                "generation of the job, or with shutdown(); make another one over a set of this "
                "generation"
            )
        self._horo_agreement = compare(self._horo_plan.names, *self._horo_comparison)

    def add_param_group(self, *args, **kwargs):
        """Like the optimizer's own, on all ranks. The group's steps are combined too."""
        super().add_param_group(*args, **kwargs)
        named = names_of(self.param_groups[-1:], None, self._horo_plan.names)
        self._horo_names.update(named)
        if self._horo_comparison is not None:
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
        combination, plan = self._horo_reducer, self._horo_plan
        combination.renewed()
        if self._horo_agreement is not None:
            self._horo_agreement.require()
        own_step = super().step
        return combination.own_step(
            combination.combine, own_step, closure, plan.names, plan.compression
        )

    # The base's own step runs the hooks that a user registers.
    step.hooked = True  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=None)
def class_over(base):
    return class_of(_AdasumDistributed, class_over, base)
