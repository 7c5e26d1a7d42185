# SPDX-License-Identifier: Apache-2.0
"""All gradients of one optimizer: when they are reduced, and how far the optimizer's step is.

It knows no framework. A framework's optimizer makes the gradients, calls computed() on each from
its hooks, and lets its step() and synchronize() go through here.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import time
import warnings
import weakref
from typing import Any

from horo import _handles, errors
from horo._arguments import whole_number
from horo._elastic import generation
from horo._failures import failure
from horo._optimizer.agreement import Agreement, Layouts
from horo._optimizer.gradient_life import NEXT, Event, Phase

AGAIN = "step() synchronizes again after synchronize(); use skip_synchronize() around it"


def whole_passes(given):
    """backward_passes_per_step as an int. Fails: ValueError."""
    passes = whole_number(given, "backward_passes_per_step")
    if passes <= 0:
        raise ValueError(f"backward_passes_per_step is {passes}; it must be 1 or more")
    return passes


def compare(names, process_set, described, number):
    """Starts to compare what the ranks' optimizers reduce, by (name, description) pairs. `number`:
    that of the optimizer in the process set."""
    what = f"optimizer.{number}.parameters"
    return Agreement(names, process_set.ranks, what, described)


class Progress:
    """How far an optimizer is, over all generations of the job. `steps`: the number of steps that it
    has finished. `torn`: an exception has ended a step while it changed parameters. `stale`: the
    runtime has shut down since the optimizer has last reduced anything. `ahead`: the number of
    coming steps that it has done already, before the step of another optimizer failed. `passes`: the
    number of backwards per step."""

    leaves_out = False  # it heeds `ahead`

    def __init__(self, passes: int):
        self._passes = passes
        self.steps = self.ahead = 0
        self.ended_at = 0.0  # time.monotonic() of the last step's end
        self.torn = False
        self._ended = 0  # backwards of this process whose steps have ended
        self.stale = False
        self._renewal: Any = None
        generation.follow(self)

    def renews_by(self, method):
        """`method` prepares the optimizer, which owns this object, for a new generation."""
        self._renewal = weakref.WeakMethod(method)

    def renewed(self):
        """Prepares the optimizer if the runtime has shut down meanwhile, and says whether it has."""
        if not self.stale:
            return False
        renew = self._renewal and self._renewal()
        self.stale = False
        try:
            if renew is not None:
                renew()
        except BaseException:
            self.generation_ended()
            raise
        return True

    def generation_ended(self):
        self.stale = True

    def own_step(self, step, *arguments):
        """Runs the optimizer's own step, which changes the parameters."""
        self.torn = True
        result = step(*arguments)
        self.torn = False
        self.steps += 1
        self.ended_at = time.monotonic()
        self._ended += self._passes
        return result

    def backwards(self):
        """The number of backwards whose steps have ended, and that of all backwards."""
        return self._ended, self._ended + self._counted()

    def _counted(self):
        """Backwards since the last step."""
        return 0


class Reducer(Progress):
    """The gradients of one optimizer. Without any, as on a single rank, it reduces nothing."""

    leaves_out = True

    def __init__(self, passes):
        super().__init__(passes)
        self.gradients: list[Any] = []
        self.phase = Phase.COLLECTING
        self._agreement: Any = None
        self._layouts: Any = None
        self._skipping = False
        self._warned = False  # of a second reduction
        self._remained = 0  # what was left of the gradients when an exception ended the own step
        self._failed = False  # the reduction of this step

    def agree(self, agreement):
        """The first synchronize() waits for this agreement, and asks for the layouts."""
        self._agreement = agreement
        self._layouts = Layouts(agreement, self.gradients)

    def add(self, gradients):
        """Further gradients, the same on all ranks."""
        self.gradients += gradients
        for gradient in gradients:
            gradient.waits, gradient.owner = 0 if self.stale else self._passes, self
        if self._layouts is not None:
            self._layouts.open += gradients

    def end(self):
        """The optimizer is gone. The gradients refer to this object, so it must not refer to them:
        their memory then returns at once, and not when Python looks for cycles of references."""
        self.gradients.clear()
        self._layouts = None

    def restart(self, passes=None):
        """Counts backwards from the beginning; `passes` of them per step, if given."""
        if passes is not None:
            self._passes = passes
        for gradient in self.gradients:
            gradient.waits = 0 if self.stale else self._passes

    def clear(self):
        """The gradients' values are no longer those of a step."""
        self._leave_out()
        self.phase, self._failed = NEXT[Event.END][self.phase], False

    def _leave_out(self):
        """A step whose gradients were reduced, and which never came, has ended, too: for example,
        scalers of a loss leave steps out."""
        if self.phase is Phase.REDUCED:
            self._ended += self._passes
            self.phase = Phase.COLLECTING

    def in_flight(self):
        return any(gradient.handle for gradient in self.gradients)

    # -- Generations -----------------------------------------------------------------------------

    @property
    def passes(self):
        """Number of backwards per step."""
        return self._passes

    def _counted(self):
        if self.stale:
            return 0
        if self.phase is not Phase.COLLECTING:
            return self._passes
        return self._passes - min((one.waits for one in self.gradients), default=self._passes)

    def within_step(self):
        """Whether a step has begun, by a backward, that has not ended."""
        if self.stale:
            return False
        return self._failed or self.phase is not Phase.COLLECTING or self._computed()

    def generation_ended(self):
        """The runtime has shut down. Gradients of a step that has not ended are dropped, because
        the step is repeated from its beginning."""
        unfinished = self.within_step()
        self.stale = True
        self.phase, self._failed = Phase.COLLECTING, False
        self._agreement = self._layouts = None
        for gradient in self.gradients:
            gradient.left()
            if unfinished:
                gradient.drop()

    # -- Reducing --------------------------------------------------------------------------------

    def synchronize(self):
        """Waits until every gradient is reduced. A gradient that is missing here counts as zeros.
        Fails: MismatchError, PeerLostError, ShutDownError."""
        self.renewed()
        if self._computed():
            self._leave_out()
        self._failed = True
        if self._agreement is not None:
            self._require(self._agreement)
            self._agreement = None
        if self._layouts is not None and self._layouts.open:
            self._require(self._layouts)
        for gradient in self.gradients:
            if gradient.waits > 0:
                gradient.due()
        first_error = self.wait()
        self._reduced(Event.REDUCTION if first_error is None else Event.FAILURE)
        if first_error is not None:
            raise first_error
        self._failed = False

    def _reduced(self, event):
        """Ends the reduction of all gradients. All is stored by one call that runs no Python code,
        so that an exception of a signal handler comes before or after it."""
        gradients = self.gradients
        owners = [self, *gradients]
        names = ["phase", *["waits"] * len(gradients)]
        values = [NEXT[event][self.phase], *[self._passes] * len(gradients)]
        collections.deque(map(setattr, owners, names, values), 0)

    def _require(self, agreement):
        try:
            agreement.require()
        except errors.MismatchError:
            self._leave(agreement.alone)
            self.restart()
            self.clear()
            raise

    def wait(self):
        """Waits for all reductions in flight and stores their results. Returns the first error, or
        None."""
        by_place: dict[Any, list[Any]] = {}
        for gradient in self.gradients:
            if gradient.handle and not gradient.sparse:
                by_place.setdefault(gradient.place, []).append(gradient)
        first_error = None
        for place, dense in by_place.items():
            failed = self._wait_at(place, dense)
            first_error = first_error or failed
        for gradient in self.gradients:
            if gradient.handle:  # sparse
                try:
                    gradient.finish_sparse()
                except errors.HoroError as error:
                    first_error = first_error or error
        return first_error

    @staticmethod
    def _wait_at(place, dense):
        """Waits for gradients in the host's memory, or lets the stream of a device wait, and stores
        their results. Returns the error or None."""
        operations = (ctypes.c_uint64 * len(dense))(*[gradient.handle for gradient in dense])
        status = _handles.wait_all(operations) if place is None else place.wait_all(operations)
        error = failure(status) if status else None
        buffers = [] if place is None else [gradient.buffer() for gradient in dense]
        for gradient in dense:
            gradient.finish(status)
        if place is None:
            _handles.take_all(operations)
        else:
            late = place.leave_all(operations, buffers, error is not None)
            error = error or late
        return error

    def _leave(self, alone):
        """Waits for all reductions in flight, except for the names `alone`, which not all ranks
        submit. The runtime keeps those, and their memory."""
        for gradient in self.gradients:
            together = gradient.group.members if gradient.group else [gradient]
            if gradient.handle and any(member.name in alone for member in together):
                gradient.abandon()
        self.wait()

    # -- Stepping --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def skip(self):
        """Inside, a step does not reduce."""
        self._skipping = True
        try:
            yield
        finally:
            self._skipping = False

    def step(self, synchronize, own_step):
        """step() without a closure. `synchronize` is the optimizer's method, `own_step` the step of
        the optimizer that reads the gradients."""
        if self._skipping:
            self.phase = NEXT[Event.OWN_STEP][self.phase]
            return None if self._was_done() else self.own_step(own_step)
        reduced = False
        try:
            self._synchronize_once(synchronize)
            reduced = True
            result = None if self._was_done() else self.own_step(own_step)
            self.phase = NEXT[Event.END][self.phase]
        except BaseException:
            if reduced:  # whatever the own step has called, such as zero_grad()
                self.phase = NEXT[Event.INTERRUPTION][self.phase]
                self._remained = self._remains()
            raise
        return result

    def _was_done(self):
        """Counts a step that the optimizer has done already. All ranks leave it out, after they have
        reduced its gradients as ever."""
        if not self.ahead:
            return False
        self.ahead -= 1
        self._ended += self._passes
        return True

    def _synchronize_once(self, synchronize):
        """Reduces, unless this is a step whose own step an exception has ended, called again: the
        other ranks have stepped and reduce nothing more. If the gradients were dropped or zeroed
        meanwhile, it is the step of another batch."""
        if self.phase is Phase.APPLYING:
            if not self._computed() and self._remains() >= self._remained:
                return
        elif self.phase is Phase.REDUCED and not self._warned:
            self._warned = True
            warnings.warn(AGAIN, stacklevel=4)
        self.phase, self._remained = NEXT[Event.STEP][self.phase], 0
        synchronize()

    def step_with(self, synchronize, closure, own_step):
        """step() with a closure that computes gradients. They are reduced before the own step reads
        them. Gradients from before the step are reduced first; a closure that computes none then
        reduces none."""
        if self._skipping:
            self.phase = NEXT[Event.OWN_STEP][self.phase]
            return closure() if self._was_done() else self.own_step(own_step, closure)
        self.renewed()
        done = any(gradient.waits <= 0 or gradient.handle for gradient in self.gradients)
        if done:
            synchronize()
        if self.ahead:
            loss = closure()
            if not done or self._computed():
                synchronize()
            self._was_done()
            self.phase = NEXT[Event.END][self.phase]
            return loss
        self.phase, changing = NEXT[Event.OWN_STEP][self.phase], False

        def reduced():
            nonlocal changing
            self.torn = changing  # before the first closure has ended, nothing is changed
            loss = closure()
            if not done or self._computed():
                synchronize()
            self.phase = NEXT[Event.OWN_STEP][self.phase]
            self.torn = changing = True
            return loss

        return self.own_step(own_step, reduced)

    def _computed(self):
        """Whether a backward has run since the last reduction."""
        passes = self._passes
        return any(gradient.waits < passes or gradient.handle for gradient in self.gradients)

    def _remains(self):
        """2 when a gradient of the last step is left that is not zero; 1 when all that are left are
        zero; 0 when all were dropped."""
        present = [gradient for gradient in self.gradients if gradient.present()]
        return 2 if any(gradient.nonzero() for gradient in present) else int(bool(present))
