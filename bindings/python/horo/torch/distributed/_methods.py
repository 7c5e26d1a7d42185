# SPDX-License-Identifier: Apache-2.0
"""The collectives as methods of the process group, with torch's arguments and under all of its names.

torch's C++ code, torch.distributed and users call them, in two forms: with lists and an options object, or
with one tensor and plain values.
"""

from __future__ import annotations

import datetime
import functools
from typing import Any

import torch
from torch.distributed import ReduceOp

from horo.torch.distributed import _collectives, _monitored, _point_to_point

METHODS: dict[str, Any] = {}  # name -> function


def _method(*names):
    """Makes function(group, ...) -> HoroWork a method under these names. A call with tensors of another
    device goes to the backend that the user has named for it."""

    def decorate(function):
        for name in names:

            @functools.wraps(function)
            def method(self, *arguments, _name=name, **options):
                other = self.others and _group_of(self.others, arguments)
                if other:
                    return getattr(other, _name)(*arguments, **options)
                return self.count(function(self, *arguments, **options))

            METHODS[name] = method
        return function

    return decorate


def _group_of(others, arguments):
    """The group for the device of the first tensor; None for the CPU."""
    for argument in arguments:
        while isinstance(argument, (list, tuple)) and argument:
            argument = argument[0]
        if isinstance(argument, torch.Tensor):
            return others.get(argument.device.type)
    return None


def _listed(tensors):
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _limited(work, opts, timeout=None):
    """The work, with the time limit of this call if it has one."""
    given = timeout if timeout is not None else getattr(opts, "timeout", None)
    if isinstance(given, datetime.timedelta) and given.total_seconds() > 0:
        work.timeout_s = given.total_seconds()
    return work


def _op_of(opts, op=None):
    """The reduce operation of an options object, or the operation itself."""
    if op is not None:
        return op
    return ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts)


def _root_of(self, opts, root=None):
    if root is None:
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
    size = self.state.size()
    if not 0 <= root < size:
        raise ValueError(f"horo: rank {root} is not in process group '{self.group_name}', whose ranks are 0 to {size - 1}")
    return root


@_method("allreduce")
def _allreduce(self, tensors, opts=None, *, op=None, timeout=None):
    work = _collectives.allreduce(self.state, _listed(tensors), _op_of(opts, op))
    return _limited(work, opts, timeout)


@_method("allreduce_coalesced")
def _allreduce_coalesced(self, tensors, opts=None):
    return _limited(_collectives.allreduce_coalesced(self.state, list(tensors), _op_of(opts)), opts)


@_method("reduce")
def _reduce(self, tensors, opts=None, op=None, *, root=None, timeout=None):
    given = _op_of(None if isinstance(opts, int) else opts, op)
    work = _collectives.reduce(self.state, _listed(tensors), given, _root_of(self, opts, root))
    return _limited(work, opts, timeout)


@_method("broadcast")
def _broadcast(self, tensors, opts=None, *, root=None, timeout=None):
    work = _collectives.broadcast(self.state, _listed(tensors), _root_of(self, opts, root))
    return _limited(work, opts, timeout)


@_method("allgather")
def _allgather(self, outputs, inputs, opts=None, *, timeout=None):
    if isinstance(inputs, torch.Tensor):
        outputs, inputs = [outputs], [inputs]
    return _limited(_collectives.allgather(self.state, outputs, inputs), opts, timeout)


@_method("_allgather_base", "all_gather_single")
def _allgather_single(self, output, source, opts=None, *, timeout=None):
    return _limited(_collectives.allgather_single(self.state, output, source), opts, timeout)


@_method("allgather_coalesced")
def _allgather_coalesced(self, outputs, inputs, opts=None):
    """torch's lists: outputs[rank][tensor]."""
    outputs = list(zip(*outputs))
    return _limited(_collectives.allgather_coalesced(self.state, outputs, list(inputs)), opts)


@_method("allgather_into_tensor_coalesced", "all_gather_single_coalesced")
def _allgather_single_coalesced(self, outputs, inputs, opts=None):
    work = _collectives.allgather_single_coalesced(self.state, list(outputs), list(inputs))
    return _limited(work, opts)


@_method("reduce_scatter")
def _reduce_scatter(self, outputs, inputs, opts=None, *, op=None, timeout=None):
    if isinstance(outputs, torch.Tensor):
        outputs, inputs = [outputs], [inputs]
    work = _collectives.reduce_scatter(self.state, list(outputs), inputs, _op_of(opts, op))
    return _limited(work, opts, timeout)


@_method("_reduce_scatter_base", "reduce_scatter_single")
def _reduce_scatter_single(self, output, source, opts=None, *, op=None, timeout=None):
    work = _collectives.reduce_scatter_single(self.state, output, source, _op_of(opts, op))
    return _limited(work, opts, timeout)


@_method("reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced")
def _reduce_scatter_coalesced(self, outputs, inputs, opts=None):
    pairs = (list(outputs), list(inputs))
    return _limited(
        _collectives.reduce_scatter_single_coalesced(self.state, *pairs, _op_of(opts)), opts
    )


@_method("gather")
def _gather(self, outputs, inputs, opts=None, *, root=None, timeout=None):
    if isinstance(inputs, torch.Tensor):
        outputs, inputs = [outputs], [inputs]
    work = _collectives.gather(self.state, outputs, inputs, _root_of(self, opts, root))
    return _limited(work, opts, timeout)


@_method("scatter")
def _scatter(self, outputs, inputs, opts=None, *, root=None, timeout=None):
    if isinstance(outputs, torch.Tensor):
        outputs, inputs = [outputs], [inputs]
    work = _collectives.scatter(self.state, list(outputs), inputs, _root_of(self, opts, root))
    return _limited(work, opts, timeout)


@_method("alltoall")
def _alltoall(self, outputs, inputs, opts=None):
    return _limited(_collectives.alltoall(self.state, list(outputs), list(inputs)), opts)


@_method("alltoall_base", "all_to_all_single")
def _alltoall_single(
    self, output, source, output_splits=(), input_splits=(), opts=None, *, timeout=None
):
    work = _collectives.alltoall_single(self.state, output, source, output_splits, input_splits)
    return _limited(work, opts, timeout)


@_method("barrier")
def _barrier(self, opts=None, *, timeout=None):
    """Devices in the options are of no use to tensors of the CPU; all ranks wait for each other."""
    return _limited(_collectives.barrier(self.state), opts, timeout)


@_method("send")
def _send(self, tensors, destination, tag=0):
    return _point_to_point.send(self.state, _listed(tensors), destination, tag)


@_method("recv")
def _receive(self, tensors, source, tag=0):
    return _point_to_point.receive(self.state, _listed(tensors), source, tag)


def _receive_any(self, _tensors, _tag=0):
    raise RuntimeError(
        "horo: recv from any source is not supported, because both ends agree on each message before it "
        "moves; name the sender: recv(tensor, src=RANK)"
    )


def _monitored_barrier(self, timeout=None, wait_all_ranks=False):
    seconds = timeout.total_seconds() if timeout is not None else -1
    limit = seconds if seconds >= 0 else self.state.timeout_s
    _monitored.monitored_barrier(self.state, limit, wait_all_ranks)


def _start_coalescing(self, _device=None):
    if self.coalesced is not None:
        raise RuntimeError("horo: _start_coalescing() was called twice without _end_coalescing()")
    self.coalesced = []


def _end_coalescing(self, *_):
    works, self.coalesced = self.coalesced, None
    if works is None:
        raise RuntimeError("horo: _end_coalescing() was called without _start_coalescing()")
    return self.state.keep(_collectives.joined(self.state, works, []))


METHODS.update(
    recv_anysource=_receive_any,
    monitored_barrier=_monitored_barrier,
    _start_coalescing=_start_coalescing,
    _end_coalescing=_end_coalescing,
)
