# SPDX-License-Identifier: Apache-2.0
"""Copies parameters and optimizer state from one rank to all, so that all start equal."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import torch

from horo import _job, errors
from horo._handles import synchronize
from horo._objects import Refused, broadcast_object
from horo._optimizer.agreement import Agreement
from horo._sets import global_process_set, of
from horo.torch._copies import dicts_kept
from horo.torch._face import DTYPES, TORCH
from horo.torch._gradients import describe

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Union

    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

    from horo._sets import ProcessSet

    Parameters = Union[dict[str, Any], Iterable[Tensor], Iterable[tuple[str, Tensor]]]

_Slot = collections.namedtuple("_Slot", "index shape dtype")


def _movable(tensor, hosted=False):
    """A contiguous tensor of a dtype that the runtime knows; `hosted`: in the host's memory. It shares
    memory with `tensor` where possible."""
    tensor = tensor.detach()
    if hosted:
        tensor = tensor.cpu()
    if tensor.layout is not torch.strided:
        raise ValueError(f"layout {tensor.layout} cannot be broadcast; use to_dense()")
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    tensor = tensor.contiguous()
    if tensor.dtype not in DTYPES:
        tensor = tensor.reshape(-1).view(torch.uint8)
    return tensor


def _broadcast_all(named, root_rank, names, hosted=False):
    """Broadcasts (name, tensor) pairs in place, all at once. `hosted`: through the host's memory,
    because the ranks' tensors may be on different devices."""
    # A tensor that cannot travel raises here, before any broadcast has started.
    movable = [(name, tensor, _movable(tensor, hosted)) for name, tensor in named]
    started = []
    for name, tensor, moving in movable:
        handle = TORCH.start_broadcast(moving, moving, root_rank, names, name)
        started.append((tensor, moving, handle))
    first_error = None
    for tensor, moving, handle in started:
        try:
            synchronize(handle)
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


def _pairs(params):
    """`params` as (name, tensor) pairs, without those that are None. Fails: ValueError."""
    if isinstance(params, dict):
        pairs: list[Any] = list(params.items())
    elif isinstance(params, (list, tuple)) or hasattr(params, "__iter__"):
        pairs = [
            entry if isinstance(entry, tuple) else (f"parameter.{index}", entry)
            for index, entry in enumerate(params)
        ]
    else:
        raise ValueError(
            f"params is of type {type(params).__name__}; give a state_dict, model.parameters() or "
            "model.named_parameters()"
        )
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[1], (torch.Tensor, type(None))):
            raise ValueError(f"parameter {pair[0]!r} is not a tensor")
    return [pair for pair in pairs if pair[1] is not None]


def broadcast_parameters(
    params: Parameters, root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Copies the root's parameters to all ranks of the set. `params` is a state_dict, or yields
    tensors or (name, tensor) pairs. `root_rank` is a rank of the job. Fails: MismatchError on all
    ranks when the ranks' parameters differ; the message names the first that does."""
    names, pairs = of(process_set), _pairs(params)
    ranks = (process_set or global_process_set).ranks
    Agreement(names, ranks, "broadcast_parameters", describe(pairs)).require()
    _broadcast_all(sorted(pairs) if isinstance(params, dict) else pairs, root_rank, names)


def _strip(value, tensors):
    """`value` with a _Slot in place of every tensor; the tensors are appended to `tensors`."""
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
    if type(value) in (list, tuple):
        return type(value)(_fill(part, tensors) for part in value)
    return value


def _as_sent(loaded, sent):
    """`loaded` with the dtypes of `sent`. torch's load_state_dict() casts state to the dtypes of the
    parameters."""
    if isinstance(sent, torch.Tensor) and isinstance(loaded, torch.Tensor):
        return loaded if loaded.dtype is sent.dtype else sent.to(loaded.device)
    if isinstance(sent, dict) and isinstance(loaded, dict):
        for key in loaded.keys() & sent.keys():
            loaded[key] = _as_sent(loaded[key], sent[key])
    elif type(sent) in (list, tuple) and type(loaded) is type(sent) and len(loaded) == len(sent):
        return type(sent)(_as_sent(*pair) for pair in zip(loaded, sent))
    return loaded


def _parameters(param_groups):
    return [parameter for group in param_groups for parameter in group["params"]]


def _load(optimizer, sent):
    if not isinstance(optimizer, torch.optim.Optimizer):
        optimizer.load_state_dict(sent)  # a wrapper knows how to load its own state
        return
    with dicts_kept(optimizer):
        optimizer.load_state_dict(sent)
    of_parameter = dict(zip(_parameters(optimizer.param_groups), _parameters(sent["param_groups"])))
    for parameter, loaded in list(optimizer.state.items()):
        of_one = sent["state"].get(of_parameter.get(parameter, parameter))
        optimizer.state[parameter] = _as_sent(loaded, of_one)


def _slots(value):
    if isinstance(value, _Slot):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [slot for part in value for slot in _slots(part)]


def broadcast_optimizer_state(
    optimizer: Optimizer,
    root_rank: int,
    model: Module | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Makes the state and the options of all ranks' optimizers equal to the root's. As in Horovod,
    parameters without a gradient get one of zeros if their optimizer has no state yet; `model` tells
    which of them have sparse gradients."""
    if not hasattr(optimizer, "param_groups"):
        kind = type(optimizer).__name__
        raise ValueError(f"optimizer is of type {kind}, not one of torch.optim")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("the state of torch.optim.LBFGS cannot be broadcast; start it empty")
    tensors: list[Any] = []
    names, skeleton, problem = of(process_set), None, None
    at_root = _job.rank() == root_rank
    if at_root:
        try:
            skeleton = _strip(optimizer.state_dict(), tensors)
            for tensor in tensors:
                _movable(tensor)
        except Exception as error:  # the other ranks wait for the broadcast, so it still happens
            problem, skeleton = error, Refused(str(error))
    skeleton = broadcast_object(skeleton, root_rank, "optimizer_state", process_set)
    if isinstance(skeleton, Refused):
        raise ValueError(f"the optimizer's state on rank {root_rank}: {skeleton.reason}") from problem
    if not at_root:
        slots = sorted(_slots(skeleton))
        tensors = [torch.empty(slot.shape, dtype=slot.dtype, device="cpu") for slot in slots]
    named = [(f"optimizer_state.{index}", tensor) for index, tensor in enumerate(tensors)]
    _broadcast_all(named, root_rank, names, hosted=True)
    if not getattr(optimizer, "state", True):
        _fill_gradients(optimizer, model)
    if not at_root:
        _load(optimizer, _fill(skeleton, tensors))


def _fill_gradients(optimizer, model):
    """Gives each parameter that trains and has no gradient one of zeros."""
    tables = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    modules = () if model is None else model.modules()
    sparse = {id(one.weight) for one in modules if isinstance(one, tables) and one.sparse}
    for parameter in _parameters(optimizer.param_groups):
        if not parameter.requires_grad or parameter.grad is not None:
            continue
        if id(parameter) in sparse or isinstance(optimizer, torch.optim.SparseAdam):
            layout = torch.sparse_coo
        else:
            layout = torch.strided
        parameter.grad = torch.zeros_like(parameter, layout=layout, requires_grad=False)
