# SPDX-License-Identifier: Apache-2.0
"""The gradient of one parameter on its way: compressed, submitted, waited for, put back.

The fast way, a dense contiguous gradient in the host's memory without compression, costs one call
of the C library from its hook and one wait. All others go through Part objects.

Where gradients lie is the plan's `share`: True, in the arena, and what torch makes elsewhere is
copied there; "auto", in the arena once they are seen to stay from step to step, as they do after
zero_grad(set_to_none=False): torch then adds into the arena, and nothing is copied; False, where
torch made them.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import weakref
from typing import Any

import torch

from horo import _core, errors
from horo._names import declare
from horo._native import ALLREDUCE, NOT_FOUND, fast
from horo.torch._agreement import DENSE, MISSING, SPARSE
from horo.torch._collectives import dtype_name, start_allgather
from horo.torch._compression import Compression
from horo.torch._memory import COUNTS, Place, alone_in_memory, memory_of, view_of
from horo.torch._parts import host_part, like, need_tensor

_submit = fast.horo_submit
_STRIDED = torch.strided


def _nothing():
    """Stands for a reference to the gradient of no step yet."""


class Plan:
    """How all gradients of an optimizer are reduced; the same on all ranks."""

    def __init__(self, names, op, prescale, postscale, compression, sparse_as_dense, share):
        self.names = names
        self.op = op
        self.prescale = prescale
        self.postscale = postscale
        self.compression = compression
        self.sparse_as_dense = sparse_as_dense
        self.share = share


class Gradient:
    """One parameter's gradient. `handle` is 0 unless its reduction is under way."""

    __slots__ = (
        "parameter",
        "name",
        "plan",
        "record",
        "signature",
        "fast",
        "count",
        "handle",
        "part",
        "memory",
        "address",
        "context",
        "sparse",
        "dense",
        "rows",
        "place",
        "seen",
        "group",
        "delay",
        "frozen",
    )

    def __init__(self, parameter, name, plan):
        self.parameter = parameter
        self.name = name
        self.plan = plan
        self.record = plan.names.record(ALLREDUCE, name)
        self.signature: Any = ()
        here = parameter.device.type == "cpu" and not parameter.is_complex()
        self.fast = here and plan.compression is Compression.none
        self.count = parameter.numel()
        self.handle = 0
        self.part: Any = None  # what is being reduced, in place
        self.memory: Any = None  # part's; what has `part` may give it other memory meanwhile
        self.address = 0
        self.context = None
        self.sparse = None  # handle of indices and values; 0 once it is known to be sparse
        self.dense = False  # known to be, on all ranks
        self.rows = False  # sparse on all ranks, though it travels as a dense one
        self.place = None  # in the arena
        self.seen: Any = None  # weak reference to the last step's gradient
        watch = self.fast and self.count and COUNTS and plan.share == "auto"
        if watch:
            self.seen = _nothing
        self.group = None
        self.delay = 1
        self.frozen = False  # this step's zeros stand for that of a parameter that wants none

    def start(self):
        """Submits the parameter's gradient; a missing one as zeros."""
        grad = self.parameter.grad
        if grad is None:
            grad = self._zeros()
        if self.place is not None or self.seen is not None:
            grad = self.placed(grad)
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
            self.part, self.memory, self.address = grad, memory_of(grad), pointer
            status = _submit(record.tensor, pointer, pointer, record.address)
            if status == NOT_FOUND:
                _core.submit(record, pointer, pointer)
            elif status:
                raise _core.failure(status)
            self.handle = record.handle = record.slot.value
        elif self.prepare(grad):
            self._declare(self.part)
            self.handle = _core.submit(self.record, self.address, self.address)

    def recover(self):
        """After an exception, such as a signal's handler raises: whether it is under way. The slot was
        zero before, and the runtime has written there what it has taken."""
        if not self.handle:
            self.handle = self.record.handle = self.record.slot.value
        return self.handle

    def prepare(self, grad):
        """Makes `part` from the gradient. False: it is sparse and has been started by itself."""
        if grad.layout is not _STRIDED and (self.dense or self.plan.sparse_as_dense):
            grad = grad.to_dense()
        if grad.layout is not _STRIDED or self.sparse is not None:
            self._start_sparse(grad)
            return False
        part, self.context = self.plan.compression.compress(grad)
        part = self.part = host_part(part, self.plan.op)
        self.memory, self.address = memory_of(part), part.data_ptr()
        return True

    def layout(self):
        """What this step's gradient is, here."""
        if self.sparse is not None or self.rows:
            return SPARSE
        grad = self.parameter.grad
        if self.dense or (self.handle and not self.plan.sparse_as_dense):
            return DENSE
        if grad is None:
            return DENSE if self.handle else MISSING
        return DENSE if grad.layout is _STRIDED else SPARSE

    def settle(self, sparse):
        """What its gradients are from now on, whatever they are here."""
        if not sparse:
            self.dense = True
        elif self.plan.sparse_as_dense:
            self.rows = True
        else:
            self.sparse, self.fast = self.sparse or 0, False

    def _declare(self, part, group=()):
        plan, record = self.plan, self.record
        signature = (part.dtype, part.shape, plan.op, plan.prescale, plan.postscale) + group
        if record.signature != signature:
            declare(
                record,
                ALLREDUCE,
                dtype_name(part.dtype),
                part.shape,
                plan.op,
                0,
                plan.prescale,
                plan.postscale,
                group,
            )
            record.signature = signature
        self.signature = record.signature

    def _zeros(self):
        parameter = self.parameter
        self.frozen = not parameter.requires_grad
        if self.sparse is not None:
            parameter.grad = self._no_rows()
        else:
            parameter.grad = torch.zeros_like(parameter, requires_grad=False)
        return parameter.grad

    def _no_rows(self):
        """A sparse gradient of zeros."""
        shape, dtype = self.parameter.shape, self.parameter.dtype
        none = torch.empty((1, 0), dtype=torch.int64, device="cpu")
        values = torch.empty((0, *shape[1:]), dtype=dtype, device="cpu")
        return _sparse(none, values, shape).to(self.parameter.device)

    def reserve(self):
        """A place in the arena from the start. Fails: ResourceError."""
        if self.fast and self.count:
            self.place = Place(self.parameter.detach())

    def placed(self, grad):
        """The gradient where the plan wants it."""
        place = self.place
        if place is None:
            self._stays(grad)
            return grad
        if grad.layout is not _STRIDED or grad.data_ptr() == place.address:
            return grad
        if grad.dtype is not place.dtype or grad.requires_grad:
            return grad
        if place.held():  # somebody keeps an earlier gradient
            try:
                self.reserve()
            except errors.ResourceError:
                return grad
            place = self.place
        if grad._base is None:
            place.take(grad)
        else:  # a view stays one of what it is a view of
            grad = self.parameter.grad = place.copy_of(grad)
        return grad

    def _stays(self, grad):
        """Moves a gradient that the last step left here into the arena, if it is alone in its
        memory. The tensor stays the same, so whoever has it sees what torch adds to it."""
        last = self.seen()
        self.seen = weakref.ref(grad) if self.seen is _nothing else None
        if last is grad and grad.layout is _STRIDED and alone_in_memory(grad):
            with contextlib.suppress(errors.ResourceError):
                Place(grad).take(grad)

    def _start_sparse(self, grad):
        if self.plan.op not in (_core.AVERAGE, _core.SUM):
            raise ValueError(f"{self.name}: sparse gradients reduce by Average or Sum only")
        if grad.layout is _STRIDED:
            grad = grad.to_sparse(1)  # rows
        elif not grad._nnz():
            grad = self._no_rows()  # zero_() makes one of single numbers
        self.handle = self.sparse = start_sparse(grad, self.plan.names, self.name)
        self.part = grad

    def finish(self, status):
        """Puts the result of a completed reduction into the parameter's gradient."""
        if not status:
            part, grad = self.part, self.parameter.grad
            if part is not grad or part.data_ptr() != self.address or self.rows:
                if part.data_ptr() != self.address:  # it got other memory meanwhile
                    part = view_of(self.memory, self.address, *self.signature[:2])
                if grad is None:  # dropped meanwhile
                    grad = torch.empty_like(self.parameter, requires_grad=False)
                    self.parameter.grad = grad
                self._put_back(part, grad)
            if self.frozen:
                self._leave_frozen()
        self.handle, self.part, self.memory, self.context, self.frozen = 0, None, None, None, False

    def _leave_frozen(self):
        """No gradient where no rank had one, so that the optimizer leaves the parameter alone: with
        zeros its momentum and its weight decay would still change it."""
        grad = self.parameter.grad
        if not (grad.coalesce().values() if grad.is_sparse else grad).any():
            self.parameter.grad = None

    def _put_back(self, part, grad):
        result = self.plan.compression.decompress(like(part, grad), self.context)
        sparse = grad.layout is not _STRIDED
        if self.rows or (sparse and not self.dense):
            self.parameter.grad = result.to_sparse(1)
        elif sparse:
            self.parameter.grad = result
        else:
            with torch.no_grad():
                grad.copy_(result)

    def finish_sparse(self):
        """Waits for a sparse gradient and puts the sum into the parameter."""
        shape, frozen = self.parameter.shape, self.frozen
        try:
            total = finish_sparse(self.sparse, shape, self.plan.names, self.plan.op)
        finally:
            if self.sparse not in _core.PENDING:  # else a signal's handler has raised meanwhile
                self.sparse, self.handle, self.part, self.frozen = 0, 0, None, False
        factor = self.plan.prescale * self.plan.postscale
        total = total if factor == 1.0 else total * factor
        grad = self.parameter.grad
        as_it_was = grad is not None and grad.layout is _STRIDED
        self.parameter.grad = total.to_dense() if as_it_was else total
        if frozen:
            self._leave_frozen()


# Indices come from other ranks: checked. Older versions of torch always check.
_CHECKS = hasattr(torch.sparse, "check_sparse_tensor_invariants")
_CHECKED = {"check_invariants": True} if _CHECKS else {}


def _sparse(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape, device=values.device, **_CHECKED)


def start_sparse(tensor, names, name):
    """Starts gathering a sparse tensor's indices and values; one handle for both."""
    need_tensor(tensor)
    if tensor.layout is not torch.sparse_coo:
        raise ValueError(f"layout {tensor.layout} is not torch.sparse_coo; use to_sparse()")
    tensor = tensor.coalesce()
    indices = tensor.indices().t().contiguous()
    values = tensor.values().contiguous()
    first = start_allgather(indices, names, name and name + ".indices")
    return _core.group([first, start_allgather(values, names, name and name + ".values")])


def finish_sparse(handle, shape, names, op):
    """The sum, or average, of the ranks' sparse tensors."""
    indices, values = _core.synchronize(handle)
    if op == _core.AVERAGE:
        values = values / names.size()
    return _sparse(indices.t(), values, shape).coalesce()


class Group:
    """Gradients that become ready together, submitted when the last of them is there."""

    def __init__(self, members):
        self.members = members
        self._look = 0  # Who was waited for last; where the look begins changes no answer.
        self._dense: Any = ()  # members that are submitted together, and where their handles go
        self._ops: Any = ()
        for member in members:
            member.group = self

    def add(self):
        """One more is there. True: the group has been submitted."""
        members, first = self.members, self._look
        for index in itertools.chain(range(first, len(members)), range(first)):
            if members[index].delay > 0 and not members[index].handle:
                self._look = index
                return False
        self._ops = ()
        try:
            self._submit()
        except BaseException:
            self._recover()
            for member in self.members:  # not under way: synchronize() submits them again
                member.delay = max(member.delay, 0 if member.handle else 1)
            raise
        return True

    def _recover(self):
        for member, op in zip(self._dense, self._ops):
            member.record.slot.value = op
            member.recover()

    def _submit(self):
        dense = []
        for member in self.members:
            if member.handle:  # what was submitted before an exception
                continue
            grad = member.parameter.grad
            if grad is None:
                grad = member._zeros()
            if member.place is not None or member.seen is not None:
                grad = member.placed(grad)
            if member.prepare(grad):
                dense.append(member)
        if dense:
            group, parts = (b"optimizer." + dense[0].record.name, len(dense)), []
            for member in dense:
                member._declare(member.part, group)
                parts.append(_core.Part(member.record, member.address, member.address))
            self._dense, self._ops = dense, (ctypes.c_uint64 * len(dense))()
            for member, handle in zip(dense, _core.submit_all(parts, self._ops)):
                member.handle = handle
