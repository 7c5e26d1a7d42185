# SPDX-License-Identifier: Apache-2.0
"""The collectives as ops on lists of tensors. Each has a gradient, made of the same ops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from horo._arguments import BY_KNOBS, SUM, whole_number, whole_numbers
from horo._native import ALLGATHER, ALLREDUCE, ALLTOALL, BROADCAST, DTYPES, REDUCESCATTER
from horo.errors import UnsupportedError
from horo.tensorflow import _names
from horo.tensorflow._errors import translated
from horo.tensorflow._module import ASYNCHRONOUS, ops

if TYPE_CHECKING:
    from horo._names import Names

_MOVABLE = {*DTYPES, "complex64", "complex128"}


class Reduction(NamedTuple):
    """How an allreduce or a reducescatter combines."""

    op: int = SUM
    prescale: float = 1.0
    postscale: float = 1.0
    wire: tuple[int, int] = BY_KNOBS

    def attributes(self) -> dict[str, Any]:
        """As attributes of an op. Numbers are text, since an attribute of type float has 32 bits."""
        return {
            "reduce_op": self.op,
            "prescale": repr(float(self.prescale)),
            "postscale": repr(float(self.postscale)),
            "wire_dtype": self.wire[0],
            "wire_feedback": self.wire[1],
        }


def as_tensor(given: Any, what: str = "tensor") -> tf.Tensor:
    """`given` as a dense tensor. Fails: ValueError (its dtype cannot travel)."""
    if isinstance(given, tf.IndexedSlices):
        raise ValueError(f"the {what} is an IndexedSlices; use allreduce(), or tf.convert_to_tensor()")
    tensor = tf.convert_to_tensor(given)
    if tensor.dtype.base_dtype.name not in _MOVABLE:
        raise ValueError(
            f"the {what} has dtype {tensor.dtype.name}, which cannot travel: "
            f"use one of {', '.join(sorted(_MOVABLE))}, or broadcast_object() for other values"
        )
    return tensor


# Types that libhoro does not have, and the type that moves their bits.
_SAME_BITS = {tf.uint32: tf.int32, tf.uint64: tf.int64}


def as_bits(given: Any, what: str = "tensor") -> tuple[tf.Tensor, tf.DType]:
    """(a tensor that can move, the dtype of `given`), for operations that do not compute. Fails: as
    as_tensor()."""
    if isinstance(given, tf.IndexedSlices):
        return as_tensor(given, what), given.dtype
    tensor = tf.convert_to_tensor(given)
    moved = _SAME_BITS.get(tensor.dtype)
    if moved is not None:
        return tf.bitcast(tensor, moved), tensor.dtype
    return as_tensor(tensor, what), tensor.dtype


def from_bits(tensor, dtype):
    """The result of as_bits() in its own dtype."""
    return tensor if tensor.dtype == dtype else tf.bitcast(tensor, dtype)


def _refuse_xla(graph):
    """XLA compiles a whole function and has no place for a collective of Horo. TensorFlow's own
    message names neither a cause nor a remedy."""
    while graph is not None:
        context = getattr(graph, "_get_control_flow_context", lambda: None)()
        while context is not None:
            if getattr(context, "IsXLAContext", lambda: False)():
                raise UnsupportedError(
                    "a collective of Horo is in a function that XLA compiles, which cannot hold it: "
                    "use tf.function(jit_compile=False) for the function, and "
                    "model.compile(jit_compile=False) for a Keras model; functions that it calls for "
                    "the forward and backward pass may stay compiled"
                )
            context = context.outer_context
        graph = getattr(graph, "outer_graph", None)


def _chained(graph, call):
    """Where kernels block a thread of TensorFlow, the ops of a graph run in the order in which they
    were traced, which is the same on all ranks. Otherwise each rank could block on another op."""
    trace = _names.trace_of(graph)
    with tf.control_dependencies([] if trace.last is None else [trace.last]):
        results = call()
    flat = tf.nest.flatten(results)
    trace.last = flat[0].op
    return results


def _guard(graph):
    """The input that keeps TensorFlow from computing a collective of constants while it prepares a
    graph: one for each graph."""
    trace = _names.trace_of(graph)
    if trace.guard is None:
        with tf.control_dependencies(None):
            trace.guard = ops.horo_place(what="rank", process_set=0, name="HoroGuard")
    return trace.guard


def _run(function, **arguments):
    """Runs an op, or adds it to the graph."""
    if tf.executing_eagerly():
        with translated():
            return function(**arguments)
    graph = tf.compat.v1.get_default_graph()
    _refuse_xla(graph)
    if ASYNCHRONOUS:
        return function(**arguments)
    return _chained(graph, lambda: function(**arguments))


def _call(function, **arguments):
    """_run() for a collective."""
    eager = tf.executing_eagerly()
    guard = 0 if eager else _guard(tf.compat.v1.get_default_graph())
    return _run(function, guard=guard, **arguments)


def _node_name(name):
    """A name as TensorFlow allows it for a node."""
    return None if name is None else "Horo_" + re.sub(r"[^A-Za-z0-9_.\\/-]", "_", name)


class Group(NamedTuple):
    """Whose tensors these are, and whether they become ready together. `names`: those of the process
    set. `name`: the user's name or None. `parts`: what the tensors are called within it."""

    names: Names
    name: str | None = None
    grouped: bool = True
    parts: tuple[str, ...] | None = None

    def attributes(self, kind: int, count: int) -> dict[str, Any]:
        parts: list[str] | int = count if self.parts is None else list(self.parts)
        return {
            "tensor_names": _names.tensor_names(self.names, kind, self.name, parts),
            "process_set": self.names.set,
            "grouped": int(self.grouped and count > 1),
            "name": _node_name(self.name),
        }


def allreduce(tensors, group, reduction):
    """The reduced tensors, as a list."""
    shared = group.attributes(ALLREDUCE, len(tensors))
    return list(_call(ops.horo_allreduce, tensors=tensors, **shared, **reduction.attributes()))


def reducescatter(tensors, group, reduction):
    """This rank's rows of each reduced tensor, as a list."""
    shared = group.attributes(REDUCESCATTER, len(tensors))
    return list(_call(ops.horo_reducescatter, tensors=tensors, **shared, **reduction.attributes()))


def allgather(tensors, group):
    """(gathered tensors, for each the rows that came from each rank)."""
    shared = group.attributes(ALLGATHER, len(tensors))
    made = _call(ops.horo_allgather, tensors=tensors, N=len(tensors), **shared)
    return list(made[0]), list(made[1])


def broadcast(tensors, root_rank, group):
    """The root's tensors, as a list."""
    root = whole_number(root_rank, "root_rank")
    shared = group.attributes(BROADCAST, len(tensors))
    return list(_call(ops.horo_broadcast, tensors=tensors, root_rank=root, **shared))


def as_splits(splits):
    """The splits of an alltoall as a tensor of int64; an empty one for equal splits."""
    if splits is None:
        return tf.zeros([0], tf.int64)
    if isinstance(splits, (tf.Tensor, tf.Variable)):
        return tf.cast(tf.convert_to_tensor(splits), tf.int64)
    return tf.constant(whole_numbers(splits) or [], tf.int64, shape=[len(splits)])


def alltoall(tensor, splits, group):
    """(received rows, rows received from each rank)."""
    shared = group.attributes(ALLTOALL, 1)
    made = _call(ops.horo_alltoall, tensor=tensor, splits=splits, **shared)
    return made[0], made[1]


def place(what, process_set=0, name=None):
    """A number about this rank, computed when the op runs."""
    return _run(ops.horo_place, what=what, process_set=process_set, name=name)
