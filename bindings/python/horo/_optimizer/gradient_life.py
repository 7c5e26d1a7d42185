# SPDX-License-Identifier: Apache-2.0
"""The life of a gradient and of an optimizer's step, as state machines that know no framework.

One gradient:

    COUNTING    `waits` more backwards will add to it
    COUNTED     no backward will add to it; it waits for its group, or for the end of the step
    IN_FLIGHT   the runtime owns its memory

    event         in          does
    computed()    COUNTING    counts one backward; after the last one: COUNTED, and it is submitted
                  COUNTED     AssertionError: more backwards than were announced
                  IN_FLIGHT   after the last one, DuplicateNameError: the runtime has its memory
    due()         COUNTING    submits it, whatever backwards are missing
                  IN_FLIGHT   COUNTED again once it has landed
    handle set    COUNTED     IN_FLIGHT
    an exception  COUNTED     COUNTING, one backward left, so that due() submits it later
    landed()      IN_FLIGHT   COUNTED
    restart       any         COUNTING; a gradient in flight counts too, until it has landed
    left()        any         COUNTED, until the next backward, or the step, makes its owner renew it

A step of the optimizer: see Phase and NEXT.
"""

from __future__ import annotations

import ctypes
import enum
import itertools
from typing import Any

from horo.errors import DuplicateNameError


class State(enum.Enum):
    COUNTING = "counting"
    COUNTED = "counted"
    IN_FLIGHT = "in flight"


class Gradient:
    """One parameter's gradient. A framework's subclass moves it, by the methods that raise
    NotImplementedError. `handle` is 0 unless its reduction is in flight; `record` is the record of
    its name. `place` is where its memory is on a device, and None in the host's memory."""

    __slots__ = ("name", "record", "slot", "waits", "handle", "group", "owner", "place")

    def __init__(self, name, record, waits=1):
        self.name = name
        self.record = record
        self.slot = record.slot  # where the runtime writes the handle
        self.waits = waits
        self.handle = 0
        self.group: Any = None
        self.owner: Any = None  # the Reducer that it belongs to
        self.place: Any = None

    @property
    def state(self):
        if self.handle:
            return State.IN_FLIGHT
        return State.COUNTING if self.waits > 0 else State.COUNTED

    def submit(self):
        """Submits the gradient by itself and sets `handle`."""
        raise NotImplementedError

    def counted(self):
        """A member of a group has its last backward behind it, on the calling thread's current
        stream; the group may be submitted by a thread with another one."""

    def prepare(self):
        """Makes the gradient ready for submission with its group. False: it travels by itself and
        has been submitted."""
        raise NotImplementedError

    def part(self, group):
        """The submission of a prepared gradient as a member of `group`, (name, members)."""
        raise NotImplementedError

    def computed(self, *_ignored):
        """A backward has added to the gradient. The framework calls this from its hook."""
        if self.waits != 1 or self.handle:
            self._count()
            return
        self.slot.value = 0
        try:
            self.waits = 0
            if self.group is None:
                self.submit()
            else:
                self.counted()
                self.group.offer()
        except BaseException:
            if not self.recover():
                self.waits = 1
            raise

    def _count(self):
        """Counts a backward that is not the last one, or refuses it."""
        if self.waits > 1:
            self.waits -= 1
            return
        if self.waits < 1 and self.owner is not None and self.owner.renewed():
            self.computed()
            return
        if self.waits < 1:
            raise AssertionError(
                f"the gradient of {self.name} was computed more often before step() than "
                "backward_passes_per_step says; raise it, or call step() or synchronize() between"
            )
        self.waits = 0
        raise DuplicateNameError(
            f"the gradient of {self.name} is being reduced already; call step() or synchronize() "
            "before the next backward"
        )

    def due(self):
        """The step needs the gradient now. A missing one is submitted."""
        if self.handle:
            self.waits = 0
            return
        self.waits = 1
        self.computed()

    def recover(self):
        """Learns after an exception, such as a signal handler raises, whether the gradient is in
        flight. The slot was 0 before, and the runtime writes the handle of what it accepts."""
        if not self.handle:
            self.handle = self.record.handle = self.slot.value
        return self.handle

    def buffer(self):
        """The memory that the reduction in flight uses."""
        raise NotImplementedError

    def landed(self):
        """The reduction has ended, and its result has been stored or dropped."""
        self.handle = 0

    def left(self):
        """The runtime has shut down. A reduction that was in flight has no result."""
        self.landed()
        self.waits = 0

    def drop(self):
        """Forgets the values, which are those of a step that will be repeated."""
        raise NotImplementedError


class Group:
    """Gradients that become ready together. They are submitted when the last one is counted."""

    def __init__(self, members, submit_all):
        """`submit_all(parts, handles)` submits all parts or none, and fills the array."""
        self.members = members
        self._submit_all = submit_all
        self._look = 0  # index of a member that was not ready; where the search starts
        self._together: Any = ()
        self._handles: Any = ()
        for member in members:
            member.group = self

    def offer(self):
        """One more member is counted. Submits the group when all are."""
        members, first = self.members, self._look
        for index in itertools.chain(range(first, len(members)), range(first)):
            if members[index].waits > 0 and not members[index].handle:  # COUNTING
                self._look = index
                return
        self._handles = ()
        try:
            self._submit()
        except BaseException:
            self._recover()
            raise

    def _submit(self):
        together = [member for member in self.members if not member.handle and member.prepare()]
        if together:
            group = (b"optimizer." + together[0].record.name, len(together))
            parts = [member.part(group) for member in together]
            self._together, self._handles = together, (ctypes.c_uint64 * len(together))()
            for member, handle in zip(together, self._submit_all(parts, self._handles)):
                member.handle = handle

    def _recover(self):
        for member, handle in zip(self._together, self._handles):
            member.slot.value = handle
            member.recover()
        for member in self.members:  # the others count one backward again: due() submits them
            member.waits = max(member.waits, 0 if member.handle else 1)


class Phase(enum.Enum):
    """How far an optimizer's step is."""

    COLLECTING = "collecting"  # backwards run; the gradients are not reduced
    REDUCED = "reduced"  # synchronize() has reduced all gradients; step() has not begun
    STEPPING = "stepping"  # step() has begun; the gradients are not reduced
    APPLYING = "applying"  # step() has reduced all; the optimizer's own step runs, or has failed


class Event(enum.Enum):
    REDUCTION = "all gradients were reduced"
    FAILURE = "a gradient was not reduced"
    STEP = "step() begins to reduce"
    OWN_STEP = "the optimizer's own step reads the gradients as they are"
    INTERRUPTION = "an exception ended the optimizer's own step"
    END = "the step is over, or its gradients are cleared"


_C, _R, _S, _A = Phase.COLLECTING, Phase.REDUCED, Phase.STEPPING, Phase.APPLYING

NEXT = {
    Event.REDUCTION: {_C: _R, _R: _R, _S: _A, _A: _A},
    Event.FAILURE: {_C: _C, _R: _C, _S: _S, _A: _S},
    Event.STEP: {_C: _S, _R: _S, _S: _S, _A: _S},
    Event.OWN_STEP: {_C: _C, _R: _C, _S: _S, _A: _S},
    Event.INTERRUPTION: {_C: _A, _R: _A, _S: _A, _A: _A},
    Event.END: {_C: _C, _R: _C, _S: _C, _A: _C},
}
