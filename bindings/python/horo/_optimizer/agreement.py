# SPDX-License-Identifier: Apache-2.0
"""Checks that all ranks reduce the same parameters in the same way.

Without these checks a collective would wait for ever for a rank that does not have the tensor. With
them, all ranks get an error that names the tensor.
"""

from __future__ import annotations

import hashlib
from typing import Any

from horo import errors
from horo._byte_rows import BYTES, ByteRows
from horo._handles import synchronize
from horo._objects import gather_objects


def names_of(param_groups, named_parameters, names):
    """(parameter, name) pairs in the order of the optimizer. `names`: the process set's. Fails:
    ValueError."""
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
    """Compares a description of the parameters between all ranks of a set. The comparison starts
    when the object is made; all ranks make theirs in the same order."""

    def __init__(self, names, ranks, what, described):
        """`ranks`: the set's, as ranks of the job. `what`: the name of the comparison, the same on
        all ranks. `described`: (name, description) pairs."""
        self.names, self.ranks, self.what, self._described = names, ranks, what, described
        digest = hashlib.sha256(repr(sorted(described)).encode()).digest()
        own = ByteRows(bytearray(digest), len(digest))
        self._handle = BYTES.start_allgather(own, names, what)
        self._error = ""
        self.alone: set[str] = set()  # names that not all ranks submit; filled after a difference

    def require(self):
        """Blocks until all ranks have made theirs. Fails: MismatchError (they differ)."""
        if self._handle is not None:
            try:
                rows = synchronize(self._handle).rows()
            except errors.MismatchError:  # a rank has joined, and makes none
                rows = []
            self._handle = None
            if len(set(rows)) > 1:
                everybodys = gather_objects(self._described, self.names, self.what + ".all")
                parameters = [dict(own) for own in everybodys]
                self._error = difference(dict(zip(self.ranks, parameters)))
                self.alone = set().union(*parameters).difference(
                    set(parameters[0]).intersection(*parameters)
                )
        if self._error:
            raise errors.MismatchError(self._error)


def difference(parameters):
    """A message that names the first parameter which is not the same on all ranks; "" when there
    is none. `parameters`: rank -> {name: description}."""
    names = list(dict.fromkeys(name for own in parameters.values() for name in own))
    differing = [name for name in names if len({own.get(name) for own in parameters.values()}) > 1]
    if not differing:
        return ""
    found = {rank: own.get(differing[0], "missing") for rank, own in parameters.items()}
    return (
        f"the ranks' models differ: parameter {differing[0]!r} is {_by_ranks(found)}"
        f"{_more(differing)}"
    )


def _by_ranks(found):
    """"dense on rank 0; sparse on ranks 1, 2", from rank -> "dense"."""
    holders: dict[str, list[int]] = {}
    for rank, words in found.items():
        holders.setdefault(words, []).append(rank)
    return "; ".join(f"{words} on {_ranks(ranks)}" for words, ranks in holders.items())


def _more(differing):
    return f" ({len(differing) - 1} more differ)" if len(differing) > 1 else ""


def _ranks(ranks):
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


MISSING, DENSE, SPARSE = range(3)
_WORDS = ("missing", "dense", "sparse")


class Layouts:
    """Which gradients are sparse.

    Sparse gradients travel by other operations than dense ones, and optimizers apply them
    differently. A rank without a gradient cannot know which layout it has on the other ranks.
    Therefore the ranks exchange the layouts in the first step in which any rank has the gradient.
    """

    def __init__(self, agreement, gradients):
        """`gradients`: those of the agreement's parameters."""
        self._names, self._ranks = agreement.names, agreement.ranks
        self._what = agreement.what + ".layouts"
        self._handle = None
        self.open = list(gradients)  # gradients without an agreed layout; the same on all ranks
        self.alone: set[str] = set()  # names that not all ranks submit; filled after a difference

    def require(self):
        """Blocks until all ranks have called it. A gradient keeps the layout that it has in this
        step, on all ranks. When a rank has joined, or no rank has a gradient, the next step asks
        again, on all ranks. Fails: MismatchError (a gradient that travels as it is, is sparse on
        one rank and dense on another)."""
        gradients = sorted(self.open, key=lambda gradient: gradient.name)
        rows = self._exchanged(gradients)
        if rows is None:
            return
        found = [set(column) for column in zip(*rows)]
        if not gradients[0].plan.sparse_as_dense:
            self._refuse_mixed(gradients, rows, [{DENSE, SPARSE} <= layouts for layouts in found])
        still_open = []
        for gradient, layouts in zip(gradients, found):
            if layouts == {MISSING}:
                still_open.append(gradient)
            else:
                gradient.settle(SPARSE if SPARSE in layouts else DENSE)
        self.open = still_open

    def _exchanged(self, gradients):
        """The layouts of all ranks, one row per rank; None when a rank has joined."""
        if self._handle is None:  # else an interruption left it in flight
            own = bytearray(gradient.seen_layout() for gradient in gradients)
            self._handle = BYTES.start_allgather(
                ByteRows(own, len(own)), self._names, self._what
            )
        try:
            rows = synchronize(self._handle).rows()
        except errors.MismatchError:
            rows = None
        self._handle = None
        return rows

    def _refuse_mixed(self, gradients, rows, mixed):
        differing = [index for index, differs in enumerate(mixed) if differs]
        self.alone = {gradients[index].name for index in differing}
        if differing:
            first = differing[0]
            found = dict(zip(self._ranks, (_WORDS[row[first]] for row in rows)))
            raise errors.MismatchError(
                f"the ranks' gradients differ: that of parameter {gradients[first].name!r} is "
                f"{_by_ranks(found)}{_more(differing)}; sparse_as_dense=True makes all dense"
            )
