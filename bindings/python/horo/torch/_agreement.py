# SPDX-License-Identifier: Apache-2.0
"""Whether all ranks have the same parameters. Where they do not, a collective would wait for
ever for a rank that does not have its tensor; here all ranks get an error that names it."""

from __future__ import annotations

import hashlib

import torch

from horo import _core, errors
from horo.torch._collectives import dtype_name, start_allgather
from horo.torch._objects import gather_objects


def describe(named):
    """[(name, dtype and shape)] of (name, tensor) pairs."""
    return [(name, f"{dtype_name(one.dtype)} {list(one.shape)}") for name, one in named]


class Agreement:
    """Starts comparing when it is made; all ranks of the set make theirs in one order."""

    def __init__(self, names, ranks, what, described):
        """`ranks`: the set's, as ranks of the job; `what`: alike on all ranks."""
        self._names, self._ranks, self._what, self._described = names, ranks, what, described
        digest = hashlib.sha256(repr(sorted(described)).encode()).digest()
        row = torch.tensor([list(digest)], dtype=torch.uint8)
        self._handle = start_allgather(row, names, what)
        self._error = ""
        self.missing: set[str] = set()  # names that not all ranks have, once they differ

    def require(self):
        """Blocks until all ranks have made theirs. Fails: MismatchError (they differ)."""
        if self._handle is not None:
            try:
                rows = _core.synchronize(self._handle)
            except errors.MismatchError:  # a rank has joined, and makes none
                rows = None
            self._handle = None
            if rows is not None and not bool((rows == rows[0]).all()):
                everybodys = gather_objects(self._described, self._names, self._what + ".all")
                parameters = [dict(own) for own in everybodys]
                self._error = difference(dict(zip(self._ranks, parameters)))
                self.missing = set().union(*parameters).difference(
                    set(parameters[0]).intersection(*parameters)
                )
        if self._error:
            raise errors.MismatchError(self._error)


def difference(parameters):
    """Says which name, the first in the order of the ranks' parameters, is not alike on all;
    nothing where there is none. `parameters`: rank -> {name: description}."""
    names = list(dict.fromkeys(name for own in parameters.values() for name in own))
    differing = [name for name in names if len({own.get(name) for own in parameters.values()}) > 1]
    if not differing:
        return ""
    holders: dict[str, list[int]] = {}
    for rank, own in parameters.items():
        holders.setdefault(own.get(differing[0], "missing"), []).append(rank)
    words = "; ".join(f"{what} on {_ranks(ranks)}" for what, ranks in holders.items())
    more = f" ({len(differing) - 1} more differ)" if len(differing) > 1 else ""
    return f"the ranks' models differ: parameter {differing[0]!r} is {words}{more}"


def _ranks(ranks):
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))
