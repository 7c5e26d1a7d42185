# SPDX-License-Identifier: Apache-2.0
"""torch's tensors as the runtime's buffers."""

from __future__ import annotations

import torch

from horo._arguments import AVERAGE, MAX, MIN, PRODUCT, SUM
from horo._native import DTYPES

# torch dtype -> name of the runtime's type that is reduced in its place, and the factor of elements
REDUCED = {getattr(torch, name): (name, 1) for name in DTYPES if hasattr(torch, name)}
REDUCED[torch.complex64] = ("float32", 2)
REDUCED[torch.complex128] = ("float64", 2)

_OPS = {"SUM": SUM, "AVG": AVERAGE, "MIN": MIN, "MAX": MAX, "PRODUCT": PRODUCT}
BITWISE = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}


def op_name(op):
    """ "SUM", "BAND", ... for torch's ReduceOp in any version."""
    kind = getattr(op, "op", op)
    name = getattr(kind, "name", None)
    if isinstance(name, str):
        return name
    return str(kind).rpartition(".")[2]


def op_code(name, dtype):
    """The runtime's reduce operation. Fails: ValueError."""
    code = _OPS.get(name)
    if code is None:
        raise ValueError(f"horo: ReduceOp.{name} is not supported for tensors of {dtype}")
    if dtype.is_complex and code not in (SUM, AVERAGE):
        raise ValueError(f"horo: ReduceOp.{name} is not defined for tensors of {dtype}; use SUM or AVG")
    return code


def check(tensor):
    """Fails: ValueError (not a dense tensor of the CPU)."""
    if tensor.device.type != "cpu":
        raise ValueError(
            f"horo: the tensor is on {tensor.device}; this process group moves tensors of the CPU. For both, "
            f'use init_process_group("cpu:horo,{tensor.device.type}:BACKEND")'
        )
    if tensor.layout != torch.strided:
        raise ValueError(f"horo: a tensor of layout {tensor.layout} is not supported here")


def one(tensors):
    """The tensor of a list of one, which older versions of torch pass. Fails: ValueError."""
    if len(tensors) != 1:
        raise ValueError(f"horo: a call takes one tensor per rank, not {len(tensors)}")
    check(tensors[0])
    return tensors[0]


def is_plain(tensor):
    """Its elements lie in memory in their order, as they are."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def plain(tensor):
    """The tensor, or a copy of it that is plain."""
    if is_plain(tensor):
        return tensor
    return tensor.resolve_conj().resolve_neg().contiguous()


def room_for(tensor):
    """Memory for the result of a tensor: the tensor itself, or a new one that land() copies."""
    return tensor if is_plain(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype)


def land(room, tensor):
    """Copies the result, unless it is there already."""
    if room is not tensor:
        tensor.detach().copy_(room)


def nbytes(tensor):
    return tensor.numel() * tensor.element_size()
