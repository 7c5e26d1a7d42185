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

import weakref
from typing import Any

import torch

from horo import _core, errors
from horo._names import declare
from horo._native import ALLREDUCE, NOT_FOUND, fast
from horo.torch._collectives import dtype_name, start_allgather
from horo.torch._compression import Compression
from horo.torch._memory import COUNTS, Place, alone_in_memory
from horo.torch._parts import host_part, like

_submit = fast.horo_submit


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
        "context",
        "sparse",
        "place",
        "seen",
        "group",
        "delay",
    )

    def __init__(self, parameter, name, plan):
        self.parameter = parameter
        self.name = name
        self.plan = plan
        self.record = plan.names.record(ALLREDUCE, name)
        self.signature = None
        here = parameter.device.type == "cpu" and not parameter.is_complex()
        self.fast = here and plan.compression is Compression.none
        self.count = parameter.numel()
        self.handle = 0
        self.part: Any = None  # what is being reduced, in place
        self.context = None
        self.sparse = None  # handles of indices and values; () once a sparse gradient was seen
        self.place = None  # in the arena
        self.seen: Any = None  # weak reference to the last step's gradient
        watch = self.fast and self.count and COUNTS and plan.share == "auto"
        if watch:
            self.seen = _nothing
        self.group = None
        self.delay = 1

    def start(self):
        """Submits the parameter's gradient; a missing one as zeros."""
        grad = self.parameter.grad
        if grad is None:
            grad = self._zeros()
        if self.place is not None or self.seen is not None:
            grad = self.placed(grad)
        if (
            self.fast
            and grad.layout is torch.strided
            and grad.is_contiguous()
            and grad.numel() == self.count
        ):
            record = self.record
            signature = self.signature
            if (
                signature is None
                or record.signature is not signature
                or signature[0] is not grad.dtype
            ):
                self._declare(grad)
            pointer = grad.data_ptr()
            status = _submit(record.tensor, pointer, pointer, record.address)
            if status == NOT_FOUND:
                _core.submit(record, pointer, pointer)
            elif status:
                raise _core.failure(status)
            self.part = grad
            self.handle = record.handle = record.slot.value
        elif self.prepare(grad):
            self._declare(self.part)
            pointer = self.part.data_ptr()
            self.handle = _core.submit(self.record, pointer, pointer)

    def prepare(self, grad):
        """Makes `part` from the gradient. False: it is sparse and has been started by itself."""
        if grad.layout is not torch.strided:
            if not self.plan.sparse_as_dense:
                self._start_sparse(grad)
                return False
            grad = grad.to_dense()
        part, self.context = self.plan.compression.compress(grad)
        self.part = host_part(part, self.plan.op)
        return True

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
        if self.sparse is not None:
            none = torch.empty((1, 0), dtype=torch.int64)
            values = torch.empty((0,) + tuple(parameter.shape[1:]), dtype=parameter.dtype)
            parameter.grad = _sparse(none, values, parameter.shape).to(parameter.device)
        else:
            parameter.grad = torch.zeros_like(parameter, requires_grad=False)
        return parameter.grad

    def reserve(self):
        """A place in the arena from the start. Fails: ResourceError."""
        if self.fast and self.count:
            self.place = Place(self.parameter.detach())

    def placed(self, grad):
        """The gradient where the plan wants it."""
        if self.place is None:
            return self._stays(grad)
        if grad.layout is not torch.strided or grad.data_ptr() == self.place.address:
            return grad
        if grad.dtype is not self.parameter.dtype or grad.requires_grad:
            return grad
        if self.place.held():  # somebody keeps an earlier gradient
            try:
                self.reserve()
            except errors.ResourceError:
                return grad
        shared = self.place.view()
        shared.copy_(grad)
        self.parameter.grad = shared
        return shared

    def _stays(self, grad):
        """Moves a gradient that the last step left here into the arena, if it is alone in its
        memory. The tensor stays the same, so whoever has it sees what torch adds to it."""
        last = self.seen()
        self.seen = weakref.ref(grad) if self.seen is _nothing else None
        if last is not grad or grad.layout is not torch.strided or not alone_in_memory(grad):
            return grad
        try:
            shared = Place(grad).view()
        except errors.ResourceError:
            return grad
        with torch.no_grad():
            shared.copy_(grad)
            grad.set_(shared)
        return grad

    def _start_sparse(self, grad):
        if self.plan.op not in (_core.AVERAGE, _core.SUM):
            raise ValueError(f"{self.name}: sparse gradients reduce by Average or Sum only")
        self.sparse = start_sparse(grad, self.plan.names, self.name)
        self.handle = self.sparse[0]
        self.part = grad

    def finish(self, status):
        """Puts the result of a completed reduction into the parameter's gradient."""
        part, self.part, self.handle = self.part, None, 0
        if not status:
            grad = self.parameter.grad
            if part is not grad:
                if grad is None:  # dropped meanwhile
                    grad = torch.empty_like(self.parameter, requires_grad=False)
                    self.parameter.grad = grad
                self._put_back(part, grad)

    def _put_back(self, part, grad):
        result = self.plan.compression.decompress(like(part, grad), self.context)
        self.context = None
        with torch.no_grad():
            if grad.layout is torch.strided:
                grad.copy_(result)
            else:
                self.parameter.grad = result.to_sparse(grad.sparse_dim())

    def finish_sparse(self):
        """Waits for a sparse gradient and puts the sum into the parameter."""
        handles, self.sparse, self.handle, self.part = self.sparse, (), 0, None
        shape = self.parameter.shape
        total = finish_sparse(handles, shape, self.plan.names, self.plan.op)
        factor = self.plan.prescale * self.plan.postscale
        self.parameter.grad = total if factor == 1.0 else total * factor


# Indices come from other ranks: checked. Older versions of torch always check.
_CHECKS = hasattr(torch.sparse, "check_sparse_tensor_invariants")
_CHECKED = {"check_invariants": True} if _CHECKS else {}


def _sparse(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape, **_CHECKED)


def start_sparse(tensor, names, name):
    """Starts gathering a sparse tensor's indices and values; both handles."""
    tensor = tensor.coalesce()
    indices = tensor.indices().t().contiguous()
    values = tensor.values().contiguous()
    return (
        start_allgather(indices, names, name and name + ".indices"),
        start_allgather(values, names, name and name + ".values"),
    )


def finish_sparse(handles, shape, names, op):
    """The sum, or average, of the ranks' sparse tensors."""
    group = _core.group(list(handles))
    indices, values = _core.synchronize(group)
    if op == _core.AVERAGE:
        values = values / names.size()
    return _sparse(indices.t(), values, shape).coalesce()


class Group:
    """Gradients that become ready together, submitted when the last of them is there."""

    def __init__(self, members):
        self.members = members
        self.ready = 0
        for member in members:
            member.group = self

    def add(self):
        """One more is there. True: the group has been submitted."""
        self.ready += 1
        if self.ready < len(self.members):
            return False
        self.ready = 0
        try:
            self._submit()
        except Exception:
            for member in self.members:  # not under way: synchronize() submits them again
                member.delay = max(member.delay, 0 if member.handle else 1)
            raise
        return True

    def _submit(self):
        dense = []
        for member in self.members:
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
                pointer = member.part.data_ptr()
                parts.append(_core.Part(member.record, pointer, pointer))
            for member, handle in zip(dense, _core.submit_all(parts)):
                member.handle = handle
