# SPDX-License-Identifier: Apache-2.0
"""Equal starts: parameters, optimizer state and Python objects from one rank to all."""

import collections
import pickle

import torch

from horo import _core, errors
from horo._sets import global_process_set, of
from horo.torch._collectives import (
    _DTYPES,
    broadcast_,
    start_allgather,
    start_broadcast,
)

_Slot = collections.namedtuple("_Slot", "index shape dtype")


def _movable(tensor):
    """A contiguous tensor of a dtype that travels; shares memory with `tensor` if it can."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        raise ValueError(f"layout {tensor.layout} cannot be broadcast; use to_dense()")
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    tensor = tensor.contiguous()
    if tensor.dtype not in _DTYPES:
        tensor = tensor.reshape(-1).view(torch.uint8)
    return tensor


def _broadcast_all(named, root_rank, names):
    """Broadcasts (name, tensor) pairs in place, all at once."""
    started = []
    for name, tensor in named:
        moving = _movable(tensor)
        started.append((tensor, moving, start_broadcast(moving, moving, root_rank, names, name)))
    first_error = None
    for tensor, moving, handle in started:
        try:
            _core.synchronize(handle)
        except errors.HoroError as error:
            first_error = first_error or error
            continue
        if moving.data_ptr() != tensor.data_ptr():
            received = moving
            if moving.dtype is not tensor.dtype:
                received = moving.view(tensor.dtype).reshape(tensor.shape)
            with torch.no_grad():
                tensor.copy_(received)
    if first_error is not None:
        raise first_error


def broadcast_parameters(params, root_rank, process_set=global_process_set):
    """Copies the root's parameters to all ranks of the set: a state_dict, or tensors, or (name,
    tensor)s. `root_rank` is a rank of the job."""
    names = of(process_set)
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, (list, tuple)) or hasattr(params, "__iter__"):
        pairs = [
            entry if isinstance(entry, tuple) else (f"parameter.{index}", entry)
            for index, entry in enumerate(params)
        ]
    else:
        raise ValueError(
            f"params is a {type(params).__name__}; give a state_dict, model.parameters() or "
            "model.named_parameters()"
        )
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[1], (torch.Tensor, type(None))):
            raise ValueError(f"parameter {pair[0]!r} is not a tensor")
    _broadcast_all([pair for pair in pairs if pair[1] is not None], root_rank, names)


def _strip(value, tensors):
    """`value` with a _Slot for every tensor, which goes to `tensors`."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return _Slot(len(tensors) - 1, tuple(value.shape), value.dtype)
    if isinstance(value, dict):
        return {key: _strip(part, tensors) for key, part in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_strip(part, tensors) for part in value)
    return value


def _fill(value, tensors):
    if isinstance(value, _Slot):
        return tensors[value.index]
    if isinstance(value, dict):
        return {key: _fill(part, tensors) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fill(part, tensors) for part in value)
    return value


def _slots(value):
    if isinstance(value, _Slot):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [slot for part in value for slot in _slots(part)]


def broadcast_optimizer_state(optimizer, root_rank, model=None, process_set=global_process_set):
    """Makes all ranks' optimizers equal to the root's: state and options. `model` is not needed."""
    del model
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("the state of torch.optim.LBFGS cannot be broadcast; start it empty")
    names, tensors, skeleton = of(process_set), [], None
    at_root = _core.rank() == root_rank
    if at_root:
        skeleton = _strip(optimizer.state_dict(), tensors)
    skeleton = broadcast_object(skeleton, root_rank, "optimizer_state", process_set)
    if not at_root:
        slots = sorted(_slots(skeleton))
        tensors = [torch.empty(slot.shape, dtype=slot.dtype) for slot in slots]
    named = [(f"optimizer_state.{index}", tensor) for index, tensor in enumerate(tensors)]
    _broadcast_all(named, root_rank, names)
    if not at_root:
        optimizer.load_state_dict(_fill(skeleton, tensors))


def _dumps(obj):
    """Pickles; what pickle refuses, such as a lambda, goes through cloudpickle when it is there."""
    try:
        return pickle.dumps(obj, pickle.HIGHEST_PROTOCOL)
    except Exception:
        try:
            import cloudpickle
        except ImportError:
            cloudpickle = None
        if cloudpickle is None:
            raise
        return cloudpickle.dumps(obj)


def _bytes_tensor(data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """The root's `obj` on every rank, by pickle. Fails on all ranks when it cannot be pickled."""
    of(process_set)
    size_name, data_name = (None, None) if name is None else (f"{name}.sz", f"{name}.t")
    at_root = _core.rank() == root_rank
    data, problem = b"", None
    if at_root:
        try:
            data = _dumps(obj)
        except Exception as error:
            problem = error
    length = torch.tensor([-1 if problem else len(data)], dtype=torch.int64)
    broadcast_(length, root_rank, size_name, process_set)
    if problem is not None:
        raise problem
    if length.item() < 0:
        raise errors.HoroError(f"rank {root_rank} could not pickle the object to broadcast")
    body = _bytes_tensor(data) if at_root else torch.empty(length.item(), dtype=torch.uint8)
    broadcast_(body, root_rank, data_name, process_set)
    return obj if at_root else pickle.loads(body.numpy().tobytes())


def allgather_object(obj, name=None, process_set=global_process_set):
    """The objects of all ranks as a list in rank order, by pickle."""
    names = of(process_set)
    data, rows = _core.synchronize(
        start_allgather(_bytes_tensor(_dumps(obj)), names, name, want_rows=True)
    )
    blob, objects, start = data.numpy().tobytes(), [], 0
    for count in rows:
        objects.append(pickle.loads(blob[start : start + count]))
        start += count
    return objects
