# SPDX-License-Identifier: Apache-2.0
"""Whether all ranks have the same parameters. Where they do not, a collective would wait for
ever for a rank that does not have its tensor; here all ranks get an error that names it."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from horo import _core, errors
from horo.torch._collectives import dtype_name, start_allgather
from horo.torch._objects import gather_objects


def describe(named):
    """[(name, dtype, shape, and layout where it is unusual)] of (name, tensor) pairs."""
    return [(name, f"{dtype_name(one.dtype)} {list(one.shape)}{_layout(one)}") for name, one in named]


def _layout(tensor):
    return "" if tensor.layout is torch.strided else f" {tensor.layout}".replace("torch.", "")


def names_of(param_groups, named_parameters, names):
    """(parameter, name) in the order of the optimizer; `names`: the set's. Fails: ValueError."""
    parameters = [parameter for group in param_groups for parameter in group["params"]]
    if named_parameters is None:
        ordinal = next(names.unnamed_optimizers)
        prefix = "noname" if ordinal == 0 else f"optimizer{ordinal}.noname"
        return [
            (parameter, f"{prefix}.{i}.{j}")
            for i, group in enumerate(param_groups)
            for j, parameter in enumerate(group["params"])
        ]
    pairs = list(named_parameters)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ValueError("named_parameters must be (name, parameter) tuples, as of a model")
    found: dict[str, Any] = {}
    for name, parameter in pairs:
        if found.setdefault(name, parameter) is not parameter:
            raise ValueError(f"named_parameters has two parameters named {name!r}")
    name_of = {id(parameter): name for name, parameter in pairs}
    missing = sum(id(parameter) not in name_of for parameter in parameters)
    if missing:
        raise ValueError(
            f"named_parameters lacks {missing} of the optimizer's {len(parameters)} parameters"
        )
    return [(parameter, name_of[id(parameter)]) for parameter in parameters]


class Agreement:
    """Starts comparing when it is made; all ranks of the set make theirs in one order."""

    def __init__(self, names, ranks, what, described):
        """`ranks`: the set's, as ranks of the job; `what`: alike on all ranks."""
        self.names, self.ranks, self.what, self._described = names, ranks, what, described
        digest = hashlib.sha256(repr(sorted(described)).encode()).digest()
        row = torch.tensor([list(digest)], dtype=torch.uint8, device="cpu")
        self._handle = start_allgather(row, names, what)
        self._error = ""
        self.alone: set[str] = set()  # names that not all ranks submit, once they differ

    def require(self):
        """Blocks until all ranks have made theirs. Fails: MismatchError (they differ)."""
        if self._handle is not None:
            try:
                rows = _core.synchronize(self._handle)
            except errors.MismatchError:  # a rank has joined, and makes none
                rows = None
            self._handle = None
            if rows is not None and not bool((rows == rows[0]).all()):
                everybodys = gather_objects(self._described, self.names, self.what + ".all")
                parameters = [dict(own) for own in everybodys]
                self._error = difference(dict(zip(self.ranks, parameters)))
                self.alone = set().union(*parameters).difference(
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
    words = _who({rank: own.get(differing[0], "missing") for rank, own in parameters.items()})
    return f"the ranks' models differ: parameter {differing[0]!r} is {words}{_more(differing)}"


def _who(said):
    """`said`: words of each rank."""
    holders: dict[str, list[int]] = {}
    for rank, words in said.items():
        holders.setdefault(words, []).append(rank)
    return "; ".join(f"{words} on {_ranks(ranks)}" for words, ranks in holders.items())


def _more(differing):
    return f" ({len(differing) - 1} more differ)" if len(differing) > 1 else ""


def _ranks(ranks):
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


MISSING, DENSE, SPARSE = range(3)
_WORDS = ("missing", "dense", "sparse")


class Layouts:
    """Which gradients are sparse. Sparse ones travel by other operations than dense ones, optimizers
    step by them in another way, and a rank that has none cannot know what the others' is: in the
    first step that has all ranks, and has one of them on any, they tell."""

    def __init__(self, agreement, gradients):
        """`gradients`: those of the agreement's parameters."""
        self._names, self._ranks = agreement.names, agreement.ranks
        self._what = agreement.what + ".layouts"
        self._handle = None
        self.open = list(gradients)  # those whose layout not all ranks know; the same on all
        self.alone: set[str] = set()  # names that not all ranks submit, once they differ

    def require(self):
        """Blocks until all ranks have called it. From now on a gradient is what it is in this step, on
        all ranks; where one has joined, or no rank has one, the next step asks again, on all.
        Fails: MismatchError (one is sparse on one rank, dense on another, and travels as it is)."""
        gradients = sorted(self.open, key=lambda gradient: gradient.name)
        rows = self._exchanged(gradients)
        if rows is None:
            return
        sparse, missing = (rows == SPARSE).any(0), (rows == MISSING).all(0)
        if not gradients[0].plan.sparse_as_dense:
            self._refuse_mixed(gradients, rows, sparse & (rows == DENSE).any(0))
        still_open = []
        for gradient, is_sparse, is_missing in zip(gradients, sparse.tolist(), missing.tolist()):
            if is_missing:
                still_open.append(gradient)
            else:
                gradient.settle(is_sparse)
        self.open = still_open

    def _exchanged(self, gradients):
        """All ranks' layouts, a row each; None where a rank has joined."""
        if self._handle is None:  # else an interruption left it in flight
            own = [gradient.layout() for gradient in gradients]
            row = torch.tensor([own], dtype=torch.uint8, device="cpu")
            self._handle = start_allgather(row, self._names, self._what)
        try:
            rows = _core.synchronize(self._handle)
        except errors.MismatchError:
            rows = None
        self._handle = None
        return rows

    def _refuse_mixed(self, gradients, rows, mixed):
        differing = [index for index, differs in enumerate(mixed.tolist()) if differs]
        self.alone = {gradients[index].name for index in differing}
        if differing:
            first = differing[0]
            said = (_WORDS[layout] for layout in rows[:, first].tolist())
            raise errors.MismatchError(
                f"the ranks' gradients differ: that of parameter {gradients[first].name!r} is "
                f"{_who(dict(zip(self._ranks, said)))}{_more(differing)}; sparse_as_dense=True "
                "makes all dense"
            )
