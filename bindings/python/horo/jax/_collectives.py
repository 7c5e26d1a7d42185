# SPDX-License-Identifier: Apache-2.0
"""The collectives as a user calls them. Outside jit they are those of every framework. Inside jit,
and under grad and vmap, they are the primitive of horo.jax._primitive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horo import _barrier
from horo._collectives import Collectives
from horo._native import ALLGATHER, ALLREDUCE, ALLTOALL, BARRIER, BROADCAST, REDUCESCATTER
from horo.jax._arguments import reduced, rooted, run, spec_of, traced
from horo.jax._jax import jax
from horo.jax._primitive import FACE, collective

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jax import Array
    from jax.typing import ArrayLike

    from horo._sets import ProcessSet

outside: Collectives[ArrayLike, Array] = Collectives(FACE, __name__, "outside")

allreduce_async = outside.allreduce_async
grouped_allreduce_async = outside.grouped_allreduce_async
reducescatter_async = outside.reducescatter_async
grouped_reducescatter_async = outside.grouped_reducescatter_async
allgather_async = outside.allgather_async
grouped_allgather_async = outside.grouped_allgather_async
alltoall_async = outside.alltoall_async
broadcast_async = outside.broadcast_async


def allreduce(
    array: ArrayLike,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> Array:
    """Reduces the arrays of all ranks and returns the result: their average, unless `op` says
    otherwise. Inside jit, an argument that is donated is reduced in place."""
    factors, wire = (prescale_factor, postscale_factor), (wire_dtype, error_feedback)
    if traced(array):
        return run(reduced(ALLREDUCE, name, process_set, op, *factors, wire), [array])[0]
    return outside.allreduce(array, name, op, *factors, process_set, *wire)


def grouped_allreduce(
    arrays: Iterable[ArrayLike],
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> list[Array]:
    """Reduces several arrays together and returns a list."""
    factors, wire = (prescale_factor, postscale_factor), (wire_dtype, error_feedback)
    return allreduce_parts(list(arrays), None, name, op, factors, process_set, wire)


def allreduce_parts(arrays, parts, name, op, factors, process_set, wire=(None, None)):
    """grouped_allreduce(), with names of the arrays for errors inside jit."""
    prescale, postscale = factors
    if traced(*arrays):
        spec = reduced(ALLREDUCE, name, process_set, op, prescale, postscale, wire)
        return run(spec._replace(parts=parts), arrays)
    dtype, feedback = wire
    return outside.grouped_allreduce(
        arrays, name, op, prescale, postscale, process_set, dtype, feedback
    )


def reducescatter(
    array: ArrayLike,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
) -> Array:
    """Reduces like allreduce and returns this rank's rows. Dimension 0 is divided in rank order;
    when it does not divide evenly, the first ranks get one row more."""
    factors = prescale_factor, postscale_factor
    if traced(array):
        return run(reduced(REDUCESCATTER, name, process_set, op, *factors), [array])[0]
    return outside.reducescatter(array, name, op, *factors, process_set)


def grouped_reducescatter(
    arrays: Iterable[ArrayLike],
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
) -> list[Array]:
    """Does several reducescatters together and returns a list."""
    factors, arrays = (prescale_factor, postscale_factor), list(arrays)
    if traced(*arrays):
        return run(reduced(REDUCESCATTER, name, process_set, op, *factors), arrays)
    return outside.grouped_reducescatter(arrays, name, op, *factors, process_set)


def allgather(
    array: ArrayLike, name: str | None = None, process_set: ProcessSet | None = None
) -> Array:
    """The arrays of all ranks, concatenated along dimension 0 in rank order. Inside jit all ranks
    give the same number of rows; outside, dimension 0 may differ."""
    if traced(array):
        return run(spec_of(ALLGATHER, name, process_set), [array])[0]
    return outside.allgather(array, name, process_set)


def grouped_allgather(
    arrays: Iterable[ArrayLike],
    name: str | None = None,
    process_set: ProcessSet | None = None,
) -> list[Array]:
    """Does several allgathers together and returns a list."""
    arrays = list(arrays)
    if traced(*arrays):
        return run(spec_of(ALLGATHER, name, process_set), arrays)
    return outside.grouped_allgather(arrays, name, process_set)


def alltoall(
    array: ArrayLike,
    splits: Sequence[int] | Array | None = None,
    name: str | None = None,
    process_set: ProcessSet | None = None,
) -> Any:
    """Sends `splits[r]` rows to rank r, or the same number of rows to every rank when there are no
    splits. Returns the received rows in rank order; with splits, the pair (rows, number of rows
    received from each rank). Inside jit there are no splits."""
    if not traced(array, splits):
        return outside.alltoall(array, splits, name, process_set)
    if splits is not None:
        raise ValueError(
            "alltoall with splits gives a result whose shape jit cannot know; call it outside jit, "
            "or pad the array and leave out splits"
        )
    return run(spec_of(ALLTOALL, name, process_set), [array])[0]


def broadcast(
    array: ArrayLike,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet | None = None,
) -> Array:
    """Returns the root's array on every rank, as a new one."""
    if traced(array):
        return run(rooted(BROADCAST, name, process_set, root_rank), [array])[0]
    return outside.broadcast(array, root_rank, name, process_set)


def barrier(tree: Any = None, process_set: ProcessSet | None = None) -> Any:
    """Blocks until all ranks of the set have called it, and returns `tree`. Inside jit, what comes
    from the returned tree is computed after all ranks have computed theirs."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    if traced(*leaves):
        leaves = collective.bind(*leaves, spec=spec_of(BARRIER, None, process_set))
        return jax.tree_util.tree_unflatten(structure, leaves)
    jax.block_until_ready(tree)
    if process_set is None:
        _barrier.barrier()
    else:
        _barrier.barrier(process_set)
    return tree
