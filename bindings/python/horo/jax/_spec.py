# SPDX-License-Identifier: Apache-2.0
"""What a collective inside jit does: the parameter of its primitive, and the shapes of results."""

from __future__ import annotations

from typing import NamedTuple, Optional

from horo._arguments import ADASUM, AVERAGE, BY_KNOBS, OP_NAMES, SUM
from horo._names import KIND_NAMES
from horo._native import ALLGATHER, ALLREDUCE, ALLTOALL, REDUCESCATTER


class Spec(NamedTuple):
    """All members are hashable, because jax compares programs by them."""

    kind: int
    site: str
    set: int  # number of the process set
    ranks: int  # of the set
    position: int  # of this rank in the set
    op: int = SUM
    root: int = 0  # rank of the job
    roots_here: bool = False  # this rank is the root
    prescale: float = 1.0
    postscale: float = 1.0
    wire: tuple[int, int] = BY_KNOBS
    rows: Optional[tuple[int, ...]] = None  # allgather: rows of the results
    named: bool = False  # the user gave the name
    parts: Optional[tuple[str, ...]] = None  # what errors call the arrays of a group; None: numbers

    def also(self, suffix, **changes):
        """The spec of another operation that belongs to this one."""
        return self._replace(site=self.site + suffix, **changes)


def own_rows(rows, spec):
    """The rows of this rank, when `rows` are divided among all."""
    each, over = divmod(rows, spec.ranks)
    return each + (1 if spec.position < over else 0)


def shapes(spec, given):
    """The shapes of the results for operands of these shapes. Fails: ValueError."""
    if spec.kind == ALLGATHER:
        rows = spec.rows or tuple(shape[0] * spec.ranks for shape in given)
        return [(count, *shape[1:]) for count, shape in zip(rows, given)]
    if spec.kind == REDUCESCATTER:
        return [(own_rows(shape[0], spec), *shape[1:]) for shape in given]
    return given


def check_shapes(kind, given, ranks):
    """Fails: ValueError."""
    for shape in given:
        if kind in (ALLGATHER, REDUCESCATTER, ALLTOALL) and not shape:
            raise ValueError(f"{KIND_NAMES[kind]} needs at least one dimension; use reshape(1)")
        if kind == ALLTOALL and shape[0] % ranks:
            raise ValueError(
                f"alltoall inside jit sends equal parts, and {shape[0]} rows are no multiple of "
                f"{ranks} ranks; pad the array, or call it outside jit with splits"
            )


def need_linear(spec):
    """Fails: NotImplementedError (the operation has no derivative)."""
    if spec.kind in (ALLREDUCE, REDUCESCATTER) and spec.op not in (SUM, AVERAGE):
        raise NotImplementedError(
            f"{KIND_NAMES[spec.kind]} with op={OP_NAMES[spec.op]} has no derivative; use Average, "
            "Sum or jax.lax.stop_gradient()"
        )


def need_batchable(spec):
    """Fails: NotImplementedError."""
    if spec.kind == ALLREDUCE and spec.op == ADASUM:
        raise NotImplementedError(
            "allreduce with op=Adasum under vmap: it combines whole arrays; call it outside vmap"
        )
