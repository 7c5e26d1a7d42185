# SPDX-License-Identifier: Apache-2.0
"""The collectives' view of torch tensors.

A dense, contiguous, real tensor is a part itself, in the host's memory or on a device of
horo.torch._devices. A complex tensor becomes a part with two real numbers in one more dimension.
Other tensors are copied, those of other devices to the host, and their results back.
"""

from __future__ import annotations

from typing import Any

import torch

from horo import _extension
from horo._arguments import AVERAGE, BY_KNOBS, OP_NAMES, SUM
from horo._face import Face
from horo._native import ALLREDUCE
from horo._operations import Operations, reduced
from horo.torch._devices import place_of
from horo.torch._memory import STORAGE, memory_of

_NAMES = "uint8 int8 uint16 int16 int32 int64 float16 float32 float64 bool bfloat16".split()
DTYPES = {getattr(torch, name): name for name in _NAMES if hasattr(torch, name)}


def dtype_name(dtype):
    """The name of a torch dtype in horo.h. Other dtypes keep torch's name, which declare()
    refuses."""
    return DTYPES.get(dtype) or str(dtype)


def need_tensor(given):
    """Fails: ValueError (it is not a tensor)."""
    if not isinstance(given, torch.Tensor):
        raise ValueError(f"{type(given).__name__} is not a torch.Tensor; try torch.as_tensor()")


def _real(tensor):
    """The numbers of a contiguous tensor, without lazy signs."""
    if tensor.is_complex() or tensor.is_neg():
        tensor = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


class _TorchFace(Face):
    def check(self, tensor, op=SUM):
        need_tensor(tensor)
        if tensor.layout is not torch.strided:
            raise ValueError(f"layout {tensor.layout} is not strided; use to_dense()")
        if op not in (SUM, AVERAGE) and tensor.is_complex():
            raise ValueError(
                f"op={OP_NAMES[op]} of {tensor.dtype}: complex tensors reduce by Sum or Average; "
                "for others give torch.view_as_real(tensor)"
            )
        if tensor.is_meta:
            raise ValueError("a tensor of device meta has no numbers")

    def check_group(self, tensors):
        for tensor in tensors:
            need_tensor(tensor)
        devices = list(dict.fromkeys(str(tensor.device) for tensor in tensors))
        if len(devices) > 1:
            raise ValueError(
                f"the tensors of a group are on {' and '.join(devices)}; they must be on one "
                "device: move them, or make a group for each device"
            )

    def address(self, tensor):
        try:
            if tensor.is_cpu and tensor.is_contiguous() and not tensor.is_complex():
                return None if tensor.is_neg() else tensor.data_ptr()
        except (AttributeError, RuntimeError):  # not a tensor, or one without memory
            pass
        return None

    def view(self, tensor):
        if not tensor.is_contiguous() or not (tensor.is_cpu or place_of(tensor)):
            return None
        if tensor.is_conj() or tensor.is_neg():
            return None
        return torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor

    def copy_in(self, tensor):
        tensor = tensor.detach()
        if place_of(tensor) is None:
            tensor = tensor.cpu()
        return _real(tensor.contiguous())

    def copy_out(self, part, tensor):
        with torch.no_grad():
            tensor.copy_(self.wrap(part, tensor))

    def wrap(self, part, like):
        if like.is_complex():
            part = torch.view_as_complex(part)
        return part if part.device == like.device else part.to(like.device)

    def empty(self, shape, like):
        return torch.empty(shape, dtype=like.dtype, device=like.device)

    def empty_like(self, tensor):
        return torch.empty_like(tensor, requires_grad=False)

    def splits(self, given):
        if not isinstance(given, torch.Tensor):
            return given
        return given.tolist() if given.dim() == 1 else [None]

    def counts(self, numbers, asked):
        device = asked.device if isinstance(asked, torch.Tensor) else torch.device("cpu")
        return torch.tensor(numbers, dtype=torch.int32, device=device)

    def dtype(self, part):
        return dtype_name(part.dtype)

    def nbytes(self, part):
        return part.numel() * part.element_size()

    def fill(self, part, address, length, place):
        if place is None:
            super().fill(part, address, length, place)
        else:
            part.copy_(place.kind.alias(address, tuple(part.shape), part))

    pointer = staticmethod(torch.Tensor.data_ptr)
    memory = staticmethod(memory_of)
    place = staticmethod(place_of)


FACE = _TorchFace()
TORCH = Operations(FACE)


# -- The fast path -------------------------------------------------------------------------------


def _declare(record, tensor, op, prescale, postscale):
    reduced(FACE, record, ALLREDUCE, tensor, op, prescale, postscale, BY_KNOBS)


def _not_started(*_arguments):
    """Stands for start_allreduce() of the extension module where there is none."""


def _starter():
    sample = torch.empty(0, device="cpu")
    if _extension.module is None or type(sample) is not torch.Tensor:
        return _not_started
    _extension.module.read_tensors(sample, DTYPES, STORAGE, _declare)
    return _extension.module.start_allreduce


# start_plain(names, source, target, name, op, prescale, postscale, average, wire_dtype,
# error_feedback) with the arguments as a user gives them: the handle of an allreduce that has been
# started, or None if a tensor or an argument is unusual.
start_plain: Any = _starter()
