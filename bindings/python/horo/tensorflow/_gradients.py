# SPDX-License-Identifier: Apache-2.0
"""The gradients of Horo's ops.

allreduce:     the same operation on the gradient; Min, Max and Product have no gradient.
allgather:     the sum of the ranks' gradients; each rank takes its own rows.
broadcast:     the sum of the ranks' gradients on the root, zero on the other ranks.
reducescatter: the ranks' gradients, gathered; for an average, divided by the number of ranks.
alltoall:      each row's gradient goes back to the rank that sent the row.

The last input of each op, its guard, has no gradient.
"""

from __future__ import annotations

import tensorflow as tf

from horo import _sets
from horo._arguments import ADASUM, AVERAGE, OP_NAMES, SUM
from horo.tensorflow import _ops


def _linear(op, what, allowed):
    if op not in allowed:
        raise NotImplementedError(
            f"{what} with op={OP_NAMES[op]} has no gradient; use Average, Sum or tf.stop_gradient()"
        )


def _group(op, grouped=None):
    """The Group of the gradient's ops: their names come from those of the op."""
    names = [name.decode() for name in op.get_attr("tensor_names")]
    number = op.get_attr("process_set")
    again = bool(op.get_attr("grouped")) if grouped is None else grouped
    base = None if ".noname." in names[0] else names[0].split(".", 2)[2] + ".backward"
    return _ops.Group(_sets.names_of(number), base, again)


def _dense(gradients, inputs):
    """Gradients as dense tensors, with zeros for those that are missing."""
    pairs = zip(gradients, inputs)
    return [tf.zeros_like(one) if grad is None else tf.convert_to_tensor(grad) for grad, one in pairs]


def _reduction(op):
    before, after = (float(op.get_attr(name)) for name in ("prescale", "postscale"))
    wire = (op.get_attr("wire_dtype"), op.get_attr("wire_feedback"))
    return _ops.Reduction(op.get_attr("reduce_op"), before, after, wire)


@tf.RegisterGradient("HoroAllreduce")
def _allreduce(op, *gradients):
    reduction = _reduction(op)
    _linear(reduction.op, "allreduce", (AVERAGE, SUM, ADASUM))
    return [*_ops.allreduce(_dense(gradients, op.inputs), _group(op), reduction), None]


@tf.RegisterGradient("HoroReducescatter")
def _reducescatter(op, *gradients):
    reduction = _reduction(op)
    _linear(reduction.op, "reducescatter", (AVERAGE, SUM))
    group = _group(op)
    dense = _dense(gradients, op.outputs)
    scale = tf.constant(reduction.prescale * reduction.postscale, tf.float64)
    if reduction.op == AVERAGE:
        scale /= tf.cast(_ops.place("set_size", group.names.set), tf.float64)
    gathered, _ = _ops.allgather(dense, group)
    return [*(one * tf.cast(scale, one.dtype) for one in gathered), None]


@tf.RegisterGradient("HoroBroadcast")
def _broadcast(op, *gradients):
    summed = _ops.allreduce(_dense(gradients, op.inputs), _group(op), _ops.Reduction(SUM))
    at_root = tf.equal(_ops.place("rank"), op.get_attr("root_rank"))
    return [*(tf.where(at_root, one, tf.zeros_like(one)) for one in summed), None]


@tf.RegisterGradient("HoroAllgather")
def _allgather(op, *gradients):
    count = len(op.inputs) - 1  # the guard is no tensor
    group = _group(op)
    results, rows = op.outputs[:count], op.outputs[count:]
    summed = _ops.allreduce(_dense(gradients[:count], results), group, _ops.Reduction(SUM))
    own = _ops.place("set_rank", group.names.set)
    starts = [tf.reduce_sum(one[:own]) for one in rows]
    ranges = zip(summed, starts, rows)
    return [*(one[begin : begin + count[own]] for one, begin, count in ranges), None]


@tf.RegisterGradient("HoroAlltoall")
def _alltoall(op, gradient, _):
    group = _group(op, grouped=False)
    back, _ = _ops.alltoall(gradient, tf.cast(op.outputs[1], tf.int64), group)
    missing = tf.shape(op.inputs[0])[0] - tf.shape(back)[0]  # rows beyond the splits were not sent
    padding = tf.concat([[[0, missing]], tf.zeros([tf.rank(back) - 1, 2], tf.int32)], 0)
    return tf.pad(back, padding), None, None
