# SPDX-License-Identifier: Apache-2.0
"""Collectives on pytrees: parameters, gradients, states of optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horo._handles import synchronize
from horo._native import BROADCAST
from horo.jax._arguments import rooted, run, traced
from horo.jax._collectives import allreduce_parts, broadcast_async
from horo.jax._compression import Compression
from horo.jax._jax import jax

if TYPE_CHECKING:
    from horo._sets import ProcessSet
    from horo.jax._compression import Compressor


def _is_key(leaf):
    """Whether the leaf is an array of keys of jax.random."""
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf):
    """The leaf as an array of numbers."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _again(array, leaf):
    """The array of numbers as what `leaf` was."""
    if _is_key(leaf):
        return jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf))
    return array if hasattr(leaf, "dtype") else type(leaf)(array.item())


def allreduce_tree(
    tree: Any,
    name: str | None = None,
    op: int | None = None,
    compression: type[Compressor] = Compression.none,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet | None = None,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> Any:
    """Reduces all arrays of a pytree together, inside jit or outside, and returns a tree of the
    same structure."""
    named, structure = jax.tree_util.tree_flatten_with_path(tree)
    if not named:
        return tree
    leaves = [leaf for _, leaf in named]
    parts = tuple(jax.tree_util.keystr(path) for path, _ in named)
    pairs = [compression.compress(jax.numpy.asarray(leaf)) for leaf in leaves]
    factors, wire = (prescale_factor, postscale_factor), (wire_dtype, error_feedback)
    arrays = [array for array, _ in pairs]
    reduced = allreduce_parts(arrays, parts, name, op, factors, process_set, wire)
    back = [compression.decompress(one, context) for one, (_, context) in zip(reduced, pairs)]
    return jax.tree_util.tree_unflatten(structure, back)


def broadcast_parameters(
    params: Any, root_rank: int = 0, process_set: ProcessSet | None = None
) -> Any:
    """Returns the root's values of a pytree of arrays, numbers and keys of jax.random on every
    rank. All ranks give a tree of the same structure."""
    leaves, structure = jax.tree_util.tree_flatten(params)
    if traced(*leaves):
        spec = rooted(BROADCAST, None, process_set, root_rank)
        return jax.tree_util.tree_unflatten(structure, run(spec, leaves) if leaves else [])
    # jax's own names of the leaves say in an error which one differs.
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(params)[0]]
    names = ["parameters" + jax.tree_util.keystr(path) for path in paths]
    handles = [
        broadcast_async(_plain(leaf), root_rank, name, process_set)
        for leaf, name in zip(leaves, names)
    ]
    results = [synchronize(handle) for handle in handles]
    given = [_again(result, leaf) for result, leaf in zip(results, leaves)]
    return jax.tree_util.tree_unflatten(structure, given)
