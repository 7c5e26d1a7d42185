# SPDX-License-Identifier: Apache-2.0
"""Moves a TorchState from the ranks that have it to the ranks that need it.

All ranks get the small part from the source: values, schedulers, options. The large part, which is
what distributed optimizers know, moves by the routes of the Choice, and only to ranks that need it.
A rank that has just come receives its model in place. What it has already, by a digest, does not
travel: for example, parameters that are not trained and that every rank loads from a file.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch

from horo import _job, _sets
from horo._arguments import MAX
from horo._byte_rows import BYTES, ByteRows
from horo._elastic.standing import DIGEST
from horo._elastic.state import send_object
from horo._handles import synchronize
from horo._objects import Refused
from horo._sets import WORLD, ProcessSet, add_process_set, remove_process_set
from horo.torch._state import _Slot, _broadcast_all, _fill, _movable, _slots, _strip

if TYPE_CHECKING:
    from typing import Any

    from horo._elastic.standing import Choice

# Smaller tensors travel sooner than their digests are compared.
_COMPARED = 1 << 16  # bytes


class Package:
    """A rank's gift. `skeleton` has a slot in place of each tensor. Fails: ValueError (a tensor cannot
    be sent)."""

    def __init__(self, content: Any) -> None:
        self.tensors: list[Any] = []
        self.skeleton = _strip(content, self.tensors)
        for tensor in self.tensors:
            _movable(tensor)


def layout_of(package: Package) -> bytes:
    """A digest of the names, shapes and dtypes of the tensors in a package."""
    named: list[Any] = []
    _name_slots(package.skeleton, (), named)
    return hashlib.sha1(repr(named).encode(), usedforsecurity=False).digest()[:DIGEST]


def _name_slots(value, path, named):
    if isinstance(value, _Slot):
        named.append((path, value.index, value.shape, str(value.dtype)))
    elif isinstance(value, dict):
        for key, part in value.items():
            _name_slots(part, (*path, key), named)
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            _name_slots(part, (*path, index), named)


def exchange(state: Any, choice: Choice) -> None:
    """All ranks call it. Fails: ValueError on all ranks (the source cannot send its state)."""
    at_source, problem = _job.rank() == choice.source, None
    common: Any = None
    known: Any = None
    sent: Any = None
    if at_source:
        try:
            common = Package(state._common())
            known = Package(state._known()) if choice.receivers else None
            digests = {} if known is None else _digests(state, known)
            sent = common.skeleton, known and known.skeleton, digests
        except Exception as error:  # the other ranks wait, so they are told
            sent, problem = Refused(str(error)), error
    sent = send_object(sent, choice.source, "elastic.skeleton")
    if isinstance(sent, Refused):
        reason = f"the state of rank {choice.source} cannot be sent: {sent.reason}"
        raise ValueError(reason) from problem
    skeleton, known_skeleton, digests = sent
    tensors = common.tensors if at_source else [_empty(slot) for slot in sorted(_slots(skeleton))]
    _broadcast_all(_named(tensors), choice.source, WORLD, hosted=True)
    landing = None
    if known_skeleton:
        landing = _move(state, choice, known, known_skeleton, digests)
    if landing is not None:
        landing.load()
    if not at_source:
        state._receive_common(_fill(skeleton, tensors), _job.rank() in choice.receivers)


def _named(tensors):
    return [(f"elastic.tensor.{index}", tensor) for index, tensor in enumerate(tensors)]


def _empty(slot):
    return torch.empty(slot.shape, dtype=slot.dtype, device="cpu")


# -- The large part ------------------------------------------------------------------------------


def _move(state, choice, known, skeleton, digests):
    """Moves what the optimizers know. Returns a receiver's Landing."""
    me = _job.rank()
    landing = Landing(state, skeleton) if me in choice.receivers else None
    wanted = set(range(len(_slots(skeleton))))
    if digests:
        wanted = _wanted(len(wanted), landing, digests)
    if landing is not None:
        landing.make_room(wanted)
        state._mixed = True
    routes = choice.routes if wanted else ()
    sets = [_set_of(route) for route in routes]
    for (names, _), route in zip(sets, routes):
        if me == route.giver:
            tensors = (known or Package(state._known())).tensors
        elif landing is not None and me in route.takers:
            tensors = landing.tensors
        else:
            continue
        moving = [pair for index, pair in enumerate(_named(tensors)) if index in wanted]
        _broadcast_all(moving, route.giver, names, hosted=True)
    for _, added in sets:
        if added is not None:
            remove_process_set(added)
    return landing


def _set_of(route):
    """The names of a process set of the route's ranks, and the set if it was added for it. All ranks
    of the job call this for each route in turn."""
    ranks = sorted((route.giver, *route.takers))
    if len(ranks) == _job.size():
        return WORLD, None
    for existing in _sets._added.values():
        if existing.ranks == ranks:
            return existing.names, None
    added = add_process_set(ProcessSet(ranks))
    return added.names, added


def _digests(state, known):
    """Index -> digest of the tensors that may be equal on a receiver."""
    may_be = {tensor.data_ptr() for tensor in untrained(state)}
    tensors = enumerate(known.tensors)
    return {index: state._digest_of(one) for index, one in tensors if one.data_ptr() in may_be}


def untrained(state: Any) -> list[Any]:
    """The large tensors of models that no optimizer changes: a new rank may have the same."""
    trained = {one.data_ptr() for one in state._parameters() if one.requires_grad}
    models = [state._handlers[name].value for name in state._models()]
    tensors = [one for model in models for one in (*model.parameters(), *model.buffers())]
    large = [one for one in tensors if one.numel() * one.element_size() >= _COMPARED]
    return [one for one in large if one.data_ptr() not in trained]


def _wanted(count, landing, digests):
    """The indices of the tensors that some receiver needs."""
    needed = bytearray(count)
    if landing is not None:
        needed[:] = bytes(index not in landing.equal(digests) for index in range(count))
    rows = ByteRows(needed)
    handle = BYTES.start_allreduce(rows, rows, WORLD, "elastic.wanted", MAX, 1.0, 1.0)
    return {index for index, one in enumerate(synchronize(handle).data) if one}


class Landing:
    """Where a receiver takes the large part of the state to."""

    def __init__(self, state, skeleton):
        self._state, self._skeleton = state, skeleton
        self._own: dict[int, Any] = {}  # index -> its own tensor of the same shape and dtype
        _match(skeleton, state._known(), self._own)
        # A rank that is behind keeps its state until it has the other one as a whole, because the
        # sender may be lost meanwhile.
        fresh = not state._whole
        self._direct = {name for name in state._models() if fresh and _fits(state, name, skeleton)}
        self._equal: Any = None
        self.tensors: list[Any] = []

    def equal(self, digests):
        """The indices of the tensors that this rank has already."""
        if self._equal is None:
            own, digest_of = self._own, self._state._digest_of
            self._equal = {
                index
                for index, digest in digests.items()
                if index in own and digest_of(own[index]) == digest
            }
        return self._equal

    def make_room(self, wanted):
        """Chooses the tensors to receive into; those that do not come are this rank's own."""
        direct = {
            slot.index for name in self._direct for slot in _slots(self._skeleton.get(name, {}))
        }
        for slot in sorted(_slots(self._skeleton)):
            own = self._own.get(slot.index)
            in_place = slot.index in direct or slot.index not in wanted
            self.tensors.append(own if own is not None and in_place else _empty(slot))

    def load(self):
        """Gives the objects what has come."""
        for name, content in _fill(self._skeleton, self.tensors).items():
            handler = self._state._handlers.get(name)
            if handler is not None and name not in self._direct:
                handler._take(content)


def _match(skeleton, own, found):
    """Adds index -> tensor to `found` for each slot whose place in `own` has such a tensor."""
    if isinstance(skeleton, _Slot):
        if isinstance(own, torch.Tensor) and own.layout is torch.strided:
            if tuple(own.shape) == skeleton.shape and own.dtype is skeleton.dtype:
                found[skeleton.index] = own
    elif isinstance(skeleton, dict) and isinstance(own, dict):
        for key in skeleton.keys() & own.keys():
            _match(skeleton[key], own[key], found)
    elif isinstance(skeleton, (list, tuple)) and isinstance(own, (list, tuple)):
        for part, mine in zip(skeleton, own):
            _match(part, mine, found)


def _fits(state, name, skeleton):
    """Whether the model can be received into its own memory, so that nothing is loaded."""
    model, content = state._handlers[name].value, skeleton.get(name)
    own = model.state_dict()
    if content is None or own.keys() != content.keys() or not _loads_plainly(model):
        return False
    places = {(one.data_ptr(), one.shape) for one in (*model.parameters(), *model.buffers())}
    return all(_is_in_place(own[key], slot, places) for key, slot in content.items())


def _is_in_place(tensor, slot, places):
    if not isinstance(slot, _Slot) or not isinstance(tensor, torch.Tensor):
        return False
    if tuple(tensor.shape) != slot.shape or tensor.dtype is not slot.dtype:
        return False
    plain = tensor.device.type == "cpu" and tensor.layout is torch.strided
    return plain and tensor.is_contiguous() and (tensor.data_ptr(), tensor.shape) in places


_HOOKS = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _loads_plainly(model):
    """Whether load_state_dict() does nothing but copy tensors into those of the model."""
    base = torch.nn.Module
    if type(model).load_state_dict is not base.load_state_dict:
        return False
    for part in model.modules():
        kind = type(part)
        if not kind._load_from_state_dict.__module__.startswith("torch.nn."):
            return False
        if kind.state_dict is not base.state_dict or any(getattr(part, one, ()) for one in _HOOKS):
            return False
        extra = getattr(base, "get_extra_state", None)
        if getattr(kind, "get_extra_state", None) is not extra:
            return False
    return True
