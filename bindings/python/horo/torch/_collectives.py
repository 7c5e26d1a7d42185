# SPDX-License-Identifier: Apache-2.0
"""Collectives on torch tensors: submit, and wait by handle.

A step in the steady state costs one dictionary look-up, one comparison of the signature and one
call of the C library per tensor. Tensors of other devices travel through memory of the host.
"""

import torch

from horo import _core
from horo._core import PENDING, RECORDS, resolve_op, submit, unnamed
from horo._limits import check_process_set
from horo._native import ALLGATHER, ALLREDUCE, BROADCAST

_DTYPES = {
    getattr(torch, name): name
    for name in (
        "uint8 int8 uint16 int16 int32 int64 float16 float32 float64 bool bfloat16".split()
    )
    if hasattr(torch, name)
}
_allreduces = RECORDS[ALLREDUCE]


def dtype_name(dtype):
    """Our name of a torch dtype; the runtime's own message refuses the others."""
    return _DTYPES.get(dtype) or str(dtype)


def host_part(tensor):
    """The tensor itself, or a copy of it in the host's memory. Fails: ValueError."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{type(tensor).__name__} is not a torch.Tensor")
    if tensor.layout is not torch.strided:
        raise ValueError(f"layout {tensor.layout} is not strided; use to_dense()")
    if not tensor.is_contiguous():
        raise ValueError("the tensor is not contiguous in memory; use contiguous()")
    return tensor if tensor.device.type == "cpu" else tensor.detach().cpu()


def finish_copy(device_tensor):
    """A finish function that brings the result from the host's memory to `device_tensor`."""

    def finish(handle, item, status=None):
        if status is None:
            status = _core.wait(handle)
        del PENDING[handle]
        if status:
            raise _core.failure(status)
        with torch.no_grad():
            device_tensor.copy_(item[0])
        return device_tensor

    return finish


# -- Allreduce ---------------------------------------------------------------------------------


def reduce_record(tensor, name, op, prescale, postscale):
    """The record of an allreduce, declared with this tensor's signature."""
    if name is None:
        record = unnamed[ALLREDUCE]()
    else:
        record = _allreduces.get(name)
        if record is None:
            record = _core.record_of(ALLREDUCE, name)
    signature = (tensor.dtype, tensor.shape, op, prescale, postscale)
    if record.signature != signature:
        dtype = dtype_name(tensor.dtype)
        _core.declare(record, ALLREDUCE, dtype, tensor.shape, op, 0, prescale, postscale)
        record.signature = signature
    return record


def start_allreduce(source, target, name, op, prescale, postscale):
    """Submits; `target` may be `source`. Returns the handle."""
    if source.is_cuda or not source.is_contiguous():
        return _start_from_device(source, target, name, op, prescale, postscale)
    try:
        pointer = source.data_ptr()
    except RuntimeError:
        host_part(source)
        raise
    record = reduce_record(source, name, op, prescale, postscale)
    handle = submit(record, pointer, pointer if target is source else target.data_ptr())
    PENDING[handle] = (target, source, None)
    return handle


def _start_from_device(source, target, name, op, prescale, postscale):
    host = host_part(source)
    record = reduce_record(host, name, op, prescale, postscale)
    handle = submit(record, host.data_ptr(), host.data_ptr())
    PENDING[handle] = (host, source, finish_copy(target))
    return handle


def allreduce_async_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """Starts reducing `tensor` over all ranks in place. Returns a handle for synchronize()."""
    if process_set is not None:
        check_process_set(process_set)
    op = resolve_op(average, op)
    return start_allreduce(tensor, tensor, name, op, prescale_factor, postscale_factor)


def allreduce_async(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """As allreduce_async_, into a new tensor; `tensor` must not change before the end."""
    if process_set is not None:
        check_process_set(process_set)
    op = resolve_op(average, op)
    target = torch.empty_like(tensor, requires_grad=False)
    return start_allreduce(tensor, target, name, op, prescale_factor, postscale_factor)


def allreduce_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """Reduces `tensor` over all ranks in place and returns it."""
    if process_set is not None:
        check_process_set(process_set)
    op = resolve_op(average, op)
    return _core.synchronize(
        start_allreduce(tensor, tensor, name, op, prescale_factor, postscale_factor)
    )


def _start_group(tensors, targets, average, name, op, factors, process_set):
    check_process_set(process_set)
    op = resolve_op(average, op)
    tensors = list(tensors)
    if not tensors:
        raise ValueError("a grouped allreduce needs at least one tensor")
    if len({tensor.device for tensor in tensors}) > 1:
        raise ValueError("the tensors of a group must be on one device")
    names = [None if name is None else f"{name}.{i}" for i in range(len(tensors))]
    hosts = [host_part(tensor) for tensor in tensors]
    outs = [
        target if host is tensor else host for tensor, host, target in zip(tensors, hosts, targets)
    ]
    records = [reduce_record(host, part, op, *factors) for host, part in zip(hosts, names)]
    handles = _core.submit_many(
        records, [host.data_ptr() for host in hosts], [out.data_ptr() for out in outs]
    )
    for handle, tensor, host, out, target in zip(handles, tensors, hosts, outs, targets):
        finish = None if host is tensor else finish_copy(target)
        PENDING[handle] = (out, host, finish)
    return _core.group(handles)


def grouped_allreduce_async(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """Starts reducing a list of tensors together; one handle, whose result is a list."""
    tensors = list(tensors)
    targets = [torch.empty_like(tensor, requires_grad=False) for tensor in tensors]
    factors = (prescale_factor, postscale_factor)
    return _start_group(tensors, targets, average, name, op, factors, process_set)


def grouped_allreduce_async_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """As grouped_allreduce_async, in place."""
    tensors = list(tensors)
    factors = (prescale_factor, postscale_factor)
    return _start_group(tensors, tensors, average, name, op, factors, process_set)


def grouped_allreduce_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """Reduces a list of tensors together, in place, and returns the list."""
    return _core.synchronize(
        grouped_allreduce_async_(
            tensors, average, name, op, prescale_factor, postscale_factor, process_set
        )
    )


# -- Allgather ---------------------------------------------------------------------------------


def _view_as_tensor(view, dtype, shape):
    if not len(view):
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(view, dtype=dtype).reshape(shape).clone()


def _finish_allgather(handle, item, status=None):
    _, (host, device, want_rows), _ = item
    try:
        view, rows, release = _core.gathered(handle, status)
    finally:
        PENDING.pop(handle, None)
    result = _view_as_tensor(view, host.dtype, (sum(rows),) + tuple(host.shape[1:]))
    release()
    if device.type != "cpu":
        result = result.to(device)
    return (result, rows) if want_rows else result


def start_allgather(tensor, name, want_rows=False):
    """Submits; the result is the tensor, with the rows of each rank when wanted."""
    host = host_part(tensor)
    if not host.dim():
        raise ValueError("allgather needs at least one dimension; use tensor.reshape(1)")
    record = _core.record_of(ALLGATHER, name)
    signature = (host.dtype, host.shape)
    if record.signature != signature:
        _core.declare(record, ALLGATHER, dtype_name(host.dtype), host.shape)
        record.signature = signature
    handle = submit(record, host.data_ptr(), None)
    PENDING[handle] = (None, (host, tensor.device, want_rows), _finish_allgather)
    return handle


def allgather_async(tensor, name=None, process_set=None):
    """Starts concatenating all ranks' tensors along dimension 0, which may differ between ranks."""
    check_process_set(process_set)
    return start_allgather(tensor, name)


# -- Broadcast ---------------------------------------------------------------------------------


def start_broadcast(source, target, root_rank, name):
    """Submits; `target` may be `source`. Returns the handle."""
    host = host_part(source)
    record = _core.record_of(BROADCAST, name)
    signature = (host.dtype, host.shape, root_rank)
    if record.signature != signature:
        _core.declare(record, BROADCAST, dtype_name(host.dtype), host.shape, root=root_rank)
        record.signature = signature
    out = target if host is source else host
    handle = submit(record, host.data_ptr(), out.data_ptr())
    PENDING[handle] = (out, host, None if host is source else finish_copy(target))
    return handle


def broadcast_async(tensor, root_rank, name=None, process_set=None):
    """Starts copying the root's tensor to all ranks, into a new tensor."""
    check_process_set(process_set)
    target = torch.empty_like(tensor, requires_grad=False)
    return start_broadcast(tensor, target, root_rank, name)


def broadcast_async_(tensor, root_rank, name=None, process_set=None):
    """Starts copying the root's tensor to all ranks, in place."""
    check_process_set(process_set)
    return start_broadcast(tensor, tensor, root_rank, name)


def broadcast_(tensor, root_rank, name=None, process_set=None):
    """Copies the root's tensor to all ranks, in place, and returns it."""
    return _core.synchronize(broadcast_async_(tensor, root_rank, name, process_set))
