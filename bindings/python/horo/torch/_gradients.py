# SPDX-License-Identifier: Apache-2.0
"""One torch parameter's gradient: where it lies, and how it is submitted and put back.

A dense contiguous gradient without compression takes the fast way: its hook makes one call of the C
library. That is so in the host's memory and on devices that the runtime reaches. All others are
copied, cast or gathered.

Plan.share says where gradients lie. True: in the arena; what torch allocates outside is copied
there. "auto": in the arena, once a gradient has stayed from one step to the next, as it does after
zero_grad(set_to_none=False); torch then adds into the arena, and nothing is copied. False: where
torch allocates them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from typing import Any

import torch

from horo import _handles, errors
from horo._arguments import AVERAGE, BY_KNOBS, SUM
from horo._device.places import memory_of as memory_kind
from horo._device.places import memory_word
from horo._names import declare
from horo._native import ALLREDUCE
from horo._operations import located
from horo._optimizer import gradient_life
from horo._optimizer.agreement import DENSE, MISSING, SPARSE
from horo.torch._compression import Compression
from horo.torch._devices import made_at, place_of
from horo.torch._face import FACE, TORCH, dtype_name
from horo.torch._memory import COUNTS, Place, alone_in_memory, memory_of, view_of
from horo.torch._sparse import finish_sparse, sparse_tensor, start_sparse

_submit, _submit_at = _handles.submit, _handles.submit_at
_STRIDED = torch.strided
_OPEN = None  # layout of a gradient that the ranks have not agreed on


def _nothing():
    """Stands for a weak reference before the first step."""


def describe(named):
    """(name, description) pairs of (name, tensor) pairs: dtype, shape, and an unusual layout."""
    return [(name, f"{dtype_name(one.dtype)} {list(one.shape)}{_layout(one)}") for name, one in named]


def _layout(tensor):
    return "" if tensor.layout is torch.strided else f" {tensor.layout}".replace("torch.", "")


@dataclasses.dataclass(frozen=True)
class Plan:
    """How an optimizer reduces its gradients; the same on all ranks."""

    names: Any  # of the process set
    op: int
    prescale: float
    postscale: float
    compression: Any
    sparse_as_dense: bool
    share: Any  # True, False or "auto"
    wire: Any  # of resolve_wire()


class Gradient(gradient_life.Gradient):
    """One parameter's gradient. `sparse` is the handle of a sparse gradient in flight, else 0."""

    __slots__ = (
        "parameter",
        "plan",
        "signature",
        "fast",
        "hosted",
        "count",
        "reduced",
        "memory",
        "address",
        "context",
        "made",
        "sparse",
        "layout",
        "home",
        "seen",
        "frozen",
    )

    def __init__(self, parameter, name, plan):
        super().__init__(name, plan.names.record(ALLREDUCE, name))
        self.parameter = parameter
        self.plan = plan
        self.signature: Any = ()
        self.count = parameter.numel()
        self.reduced: Any = None  # the tensor that is being reduced, in place
        self.memory: Any = None  # its memory: the tensor may get other memory meanwhile
        self.address = 0
        self.context = None  # of the compression
        self.made: Any = None  # a group's member: where on a device its gradient was computed
        self.sparse = 0
        self.layout: Any = _OPEN  # then DENSE or SPARSE, on all ranks
        self._locate()
        self.home: Any = None  # its place in the arena
        self.seen: Any = None  # weak reference to the last step's gradient
        self._watch()
        self.frozen = False  # this step's zeros stand for a parameter that requires no gradient

    def _locate(self):
        """Learns whether the parameter is in the host's memory, and whether it takes the fast way."""
        parameter, plan = self.parameter, self.plan
        self.hosted = parameter.is_cpu
        reached = self.hosted or place_of(parameter) is not None
        dense = self.layout != SPARSE or plan.sparse_as_dense
        plain = dense and not parameter.is_complex()
        self.fast = reached and plain and plan.compression is Compression.none

    def _moved(self):
        """The program has moved the model between the host's memory and a device's, as on all ranks."""
        self.home, self.signature = None, ()
        self._locate()
        self._watch()
        if self.plan.share is True:
            with contextlib.suppress(errors.ResourceError):
                self.reserve()

    def _watch(self):
        """Looks again whether the gradient stays from step to step, if its place depends on it."""
        watch = self.fast and self.hosted and self.count and COUNTS and self.plan.share == "auto"
        self.seen = _nothing if watch else None

    # -- Generations -----------------------------------------------------------------------------

    def left(self):
        """The runtime has shut down. A gradient in the arena stays there, as in other memory."""
        super().left()
        self.context, self.home = None, None

    def drop(self):
        self.parameter.grad = None

    def renew(self):
        """Prepares the gradient for a runtime that was initialised again."""
        self.record = self.plan.names.record(ALLREDUCE, self.name)
        self.slot = self.record.slot
        self.signature = ()
        self._watch()
        if self.plan.share is True:
            self.reserve()

    # -- Submission ------------------------------------------------------------------------------

    def submit(self):
        grad = self.parameter.grad
        if grad is None:
            grad = self._zeros()
        if grad.is_cpu is not self.hosted:
            self._moved()
        if self.home is not None or self.seen is not None:
            grad = self._placed(grad)
        if (
            self.fast
            and grad.layout is _STRIDED
            and grad.is_contiguous()
            and grad.numel() == self.count
        ):
            record = self.record
            signature = self.signature
            if record.signature is not signature or signature[0] is not grad.dtype:
                self._declare(grad)
            pointer = grad.data_ptr()
            self.reduced, self.memory, self.address = grad, memory_of(grad), pointer
            if self.hosted:
                self.handle = _submit(record, pointer, pointer)
            else:
                self._submit_placed(grad)
        elif self._prepare(grad):
            self._declare(self.reduced)
            self._submit_placed(self.reduced)

    def _submit_placed(self, part):
        """Submits the memory of `part`, which is on a device or in the host's memory."""
        record, address, place = self.record, self.address, place_of(part)
        self.place = place
        if place is None:
            self.handle = _submit(record, address, address)
        else:
            self.handle = _submit_at(record, address, address, place.index, place.submitted)

    def counted(self):
        grad = self.parameter.grad
        self.made = None if grad is None else made_at(grad)

    def prepare(self):
        grad = self.parameter.grad
        if grad is None:
            grad = self._zeros()
        if grad.is_cpu is not self.hosted:
            self._moved()
        if self.home is not None or self.seen is not None:
            grad = self._placed(grad)
        if self.made is not None and not self._travels_as_it_is(grad):
            strided = grad.layout is _STRIDED
            tensors = [grad] if strided else [grad._indices(), grad._values()]
            self.made.precede([memory_of(one) for one in tensors])
            self.made = None
        return self._prepare(grad)

    def _travels_as_it_is(self, grad):
        return self.fast and grad.layout is _STRIDED and grad.is_contiguous()

    def part(self, group):
        self._declare(self.reduced, group)
        self.place = self.made or place_of(self.reduced)
        return located(_handles.Part(self.record, self.address, self.address), self.place)

    def _prepare(self, grad):
        """Sets `reduced` from the gradient. False: it is sparse and has been started by itself."""
        as_dense = self.layout == DENSE or self.plan.sparse_as_dense
        if grad.layout is not _STRIDED and as_dense:
            grad = grad.to_dense()
        if not as_dense and (grad.layout is not _STRIDED or self.layout == SPARSE):
            self._start_sparse(grad)
            return False
        compressed, self.context = self.plan.compression.compress(grad)
        part = self.reduced = TORCH.part(compressed, self.plan.op)
        self.memory, self.address = memory_of(part), part.data_ptr()
        return True

    def _declare(self, part, group=()):
        plan, record = self.plan, self.record
        scales = (plan.prescale, plan.postscale)
        wire = plan.wire if part.dtype is torch.float32 else BY_KNOBS  # others travel as they are
        place = place_of(part)
        signature = (part.dtype, part.shape, plan.op, *scales, wire, *group, *memory_word(place))
        if record.signature != signature:
            dtype, memory = dtype_name(part.dtype), memory_kind(place)
            declare(record, ALLREDUCE, dtype, part.shape, plan.op, 0, *scales, group, wire, memory)
            record.signature = signature
        self.signature = record.signature

    def _zeros(self):
        """Gives the parameter a gradient of zeros, which stands for the missing one."""
        parameter = self.parameter
        self.frozen = not parameter.requires_grad
        if self.layout == SPARSE and not self.plan.sparse_as_dense:
            parameter.grad = self._no_rows()
        else:
            parameter.grad = torch.zeros_like(parameter, requires_grad=False)
        return parameter.grad

    # -- Sparse gradients ------------------------------------------------------------------------

    def seen_layout(self):
        """The layout of this step's gradient on this rank."""
        if self.layout == SPARSE:
            return SPARSE
        grad = self.parameter.grad
        if self.layout == DENSE or (self.handle and not self.plan.sparse_as_dense):
            return DENSE
        if grad is None:
            return DENSE if self.handle else MISSING
        return DENSE if grad.layout is _STRIDED else SPARSE

    def settle(self, layout):
        """All ranks' gradients have this layout from now on; others are converted."""
        self.layout = layout
        if layout == SPARSE and not self.plan.sparse_as_dense:
            self.fast = False

    def _no_rows(self):
        """A sparse gradient of zeros."""
        shape, dtype = self.parameter.shape, self.parameter.dtype
        none = torch.empty((1, 0), dtype=torch.int64, device="cpu")
        values = torch.empty((0, *shape[1:]), dtype=dtype, device="cpu")
        return sparse_tensor(none, values, shape).to(self.parameter.device)

    def _start_sparse(self, grad):
        if self.plan.op not in (AVERAGE, SUM):
            raise ValueError(f"{self.name}: sparse gradients reduce by Average or Sum only")
        self.layout = SPARSE
        if grad.layout is _STRIDED:
            grad = grad.to_sparse(1)  # rows
        elif not grad._nnz():
            grad = self._no_rows()  # zero_() leaves one of single numbers, not of rows
        self.handle = self.sparse = start_sparse(grad, self.plan.names, self.name)
        self.reduced = grad

    def finish_sparse(self):
        """Waits for a sparse gradient and puts the sum into the parameter."""
        shape, frozen = self.parameter.shape, self.frozen
        try:
            total = finish_sparse(self.sparse, shape, self.plan.names, self.plan.op)
        finally:
            if self.sparse not in _handles.PENDING:  # else a signal handler has interrupted the wait
                self.landed()
        factor = self.plan.prescale * self.plan.postscale
        total = total if factor == 1.0 else total * factor
        grad = self.parameter.grad
        was_dense = grad is not None and grad.layout is _STRIDED
        self.parameter.grad = total.to_dense() if was_dense else total
        if frozen:
            self._leave_frozen()

    # -- The arena -------------------------------------------------------------------------------

    def reserve(self):
        """Takes a place in the arena. Fails: ResourceError."""
        if self.fast and self.hosted and self.count:
            self.home = Place(self.parameter.detach())

    def _placed(self, grad):
        """The gradient at the place that the plan asks for."""
        place = self.home
        if place is None:
            self._stays(grad)
            return grad
        if grad.layout is not _STRIDED or grad.data_ptr() == place.address:
            return grad
        if grad.dtype is not place.dtype or grad.requires_grad:
            return grad
        if place.held():  # the user keeps an earlier gradient
            try:
                self.reserve()
            except errors.ResourceError:
                return grad
            place = self.home
        if grad._base is None:
            place.take(grad)
        else:  # a view must stay a view of its base
            grad = self.parameter.grad = place.copy_of(grad)
        return grad

    def _stays(self, grad):
        """Moves a gradient that has stayed since the last step into the arena, if it is alone in
        its memory. It stays the same tensor, so every holder of it sees what torch adds."""
        last = self.seen()
        self.seen = weakref.ref(grad) if self.seen is _nothing else None
        if last is grad and grad.layout is _STRIDED and alone_in_memory(grad):
            with contextlib.suppress(errors.ResourceError):
                Place(grad).take(grad)

    # -- The end ---------------------------------------------------------------------------------

    def finish(self, status):
        """Puts the result of a completed reduction into the parameter's gradient."""
        if not status:
            part, grad = self.reduced, self.parameter.grad
            as_rows = self.layout == SPARSE and self.plan.sparse_as_dense
            if part is not grad or part.data_ptr() != self.address or as_rows:
                if part.data_ptr() != self.address:  # it got other memory meanwhile
                    part = view_of(self.memory, self.address, *self.signature[:2])
                if grad is None:  # the user dropped it meanwhile
                    grad = torch.empty_like(self.parameter, requires_grad=False)
                    self.parameter.grad = grad
                self._put_back(part, grad, as_rows)
            if self.frozen:
                self._leave_frozen()
        self.handle, self.reduced, self.memory, self.context, self.frozen = 0, None, None, None, False

    def buffer(self):
        return self.memory

    def landed(self):
        self.sparse, self.handle, self.reduced, self.memory, self.frozen = 0, 0, None, None, False

    def abandon(self):
        """Gives up a gradient that not all ranks submit. The runtime keeps its memory."""
        if not self.sparse:
            _handles.abandon(self.handle, self.memory)
        self.landed()

    def present(self):
        """Whether the parameter has a gradient."""
        return self.parameter.grad is not None

    def nonzero(self):
        """Whether the gradient has an element that is not zero."""
        return bool(self.parameter.grad.to_dense().any())

    def _leave_frozen(self):
        """Removes the gradient when no rank had one, so that the optimizer leaves the parameter
        alone: with zeros, momentum and weight decay would still change it."""
        grad = self.parameter.grad
        if not (grad.coalesce().values() if grad.is_sparse else grad).any():
            self.parameter.grad = None

    def _put_back(self, part, grad, as_rows):
        result = self.plan.compression.decompress(FACE.wrap(part, grad), self.context)
        sparse = grad.layout is not _STRIDED
        if as_rows or (sparse and self.layout != DENSE):
            self.parameter.grad = result.to_sparse(1)
        elif sparse:
            self.parameter.grad = result
        else:
            with torch.no_grad():
                grad.copy_(result)
