# SPDX-License-Identifier: Apache-2.0
"""What of a tensor the runtime sees: dense, contiguous real numbers in the host's memory.

A tensor that is that already is itself; others are copied there, and their results back. Complex
numbers are two real ones in a dimension of their own.
"""

from __future__ import annotations

import torch

from horo import _core, _ops


def need_tensor(given):
    """Fails: ValueError."""
    if not isinstance(given, torch.Tensor):
        raise ValueError(f"{type(given).__name__} is not a torch.Tensor; try torch.as_tensor()")


def host_part(tensor, op=_core.SUM):
    """The tensor as the runtime sees it, or a copy. Fails: ValueError (no dense tensor; a complex
    one and an `op` that is none of complex numbers)."""
    need_tensor(tensor)
    if tensor.layout is not torch.strided:
        raise ValueError(f"layout {tensor.layout} is not strided; use to_dense()")
    if op not in (_core.SUM, _core.AVERAGE) and tensor.is_complex():
        raise ValueError(
            f"op={_core.OP_NAMES[op]} of {tensor.dtype}: complex tensors reduce by Sum or Average; "
            "for others give torch.view_as_real(tensor)"
        )
    part = tensor
    if part.device.type != "cpu":
        if part.is_meta:
            raise ValueError("a tensor of device meta has no numbers")
        part = part.detach().cpu()
    if not part.is_contiguous():
        part = part.detach().contiguous()
    return real(part)


def real(part):
    """The numbers of a contiguous tensor in the host's memory."""
    if part.is_complex() or part.is_neg():
        part = part.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(part) if part.is_complex() else part


def rows_part(tensor, what):
    """As host_part, of what is dealt with by rows. Fails: ValueError (no dimension)."""
    if isinstance(tensor, torch.Tensor):
        _ops.need_rows(tensor, what)
    return host_part(tensor)


def landing(target, spare=None):
    """Where the result for `target` goes, and the finish function that brings it home from there,
    if need be. `spare`: a part of its shape that may be overwritten; None: one is made."""
    lazy = target.is_conj() or target.is_neg()
    if target.device.type == "cpu" and target.is_contiguous() and not lazy:
        if not target.is_complex():
            return target, None
        return torch.view_as_real(target.detach()), _bring(target, None)
    if spare is None:
        spare = real(torch.empty(target.shape, dtype=target.dtype, device="cpu"))
    return spare, _bring(target, spare)


def like(part, tensor):
    """What the runtime gave as `part`, in the dtype and on the device of `tensor`."""
    if tensor.is_complex():
        part = torch.view_as_complex(part)
    return part if tensor.device.type == "cpu" else part.to(tensor.device)


def _bring(target, part):
    """A finish function that gives `target`, to which `part`, if there is one, is copied before."""

    def finish(handle, item, status=None):
        del item
        if status is None:
            status = _core.wait(handle)
        error = _core.failure(status) if status else None
        if error is None and part is not None:
            with torch.no_grad():
                target.copy_(like(part, target))
        _core.take(handle)
        if error is not None:
            raise error
        return target

    return finish


def spare_of(part, tensor):
    """`part` if it is a copy of `tensor`, which nobody else has; else None."""
    return None if part.data_ptr() == tensor.data_ptr() else part
