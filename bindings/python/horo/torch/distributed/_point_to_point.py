# SPDX-License-Identifier: Apache-2.0
"""Messages from one rank to another.

A message is a broadcast from the sender in the process set of the two ranks, which they alone take part
in. _members.py adds that set when it is first needed. The name has sender, receiver, tag and number, so
messages with one tag arrive in order, those with different tags in any order, and messages in both
directions do not wait for each other. A message begins when both ends have called, as with gloo; no copy
of it waits anywhere.
"""

from __future__ import annotations

import threading

import torch

from horo.torch.distributed import _calls
from horo.torch.distributed._tensors import is_plain, land, nbytes, one, plain
from horo.torch.distributed._work import HoroWork


class Pairs:
    """The process sets of this rank with each other rank of a group. Thread: any."""

    def __init__(self, group):
        self._group = group
        self._sets = {}
        self._lock = threading.Lock()

    def with_rank(self, other):
        """The number of the set. Blocks until it exists."""
        number = self._sets.get(other)
        if number is None:
            with self._lock:
                number = self._sets.get(other)
                if number is None:
                    number = self._take(other)
                    self._sets[other] = number
        return number

    def _ranks(self, other):
        return sorted((self._group.ranks[self._group.rank()], self._group.ranks[other]))

    def _take(self, other):
        return self._group.domain.set_of(self._ranks(other), self._group.timeout_s)

    def release(self):
        with self._lock:
            for other in self._sets:
                self._group.domain.release_set(self._ranks(other))
            self._sets.clear()


def _start(group, room, other, ends, tag):
    if other == group.rank() or not 0 <= other < group.size():
        what = "itself" if other == group.rank() else f"rank {other}"
        raise ValueError(
            f"horo: rank {group.rank()} of {group.size()} cannot exchange a message with {what}"
        )
    pair = group.pairs.with_rank(other)
    return _calls.message(group, room, nbytes(room), pair, [group.ranks[end] for end in ends], tag)


def send(group, tensors, to, tag):
    source = plain(one(tensors))
    operation = _start(group, source, to, (group.rank(), to), tag)
    return HoroWork(group, [operation], tensors, source=group.rank())


def receive(group, tensors, sender, tag):
    tensor = one(tensors)
    room = tensor.detach() if is_plain(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype)
    operation = _start(group, room, sender, (sender, group.rank()), tag)
    if not is_plain(tensor):
        operation.then(lambda: land(room, tensor))
    return HoroWork(group, [operation], tensors, source=sender)
