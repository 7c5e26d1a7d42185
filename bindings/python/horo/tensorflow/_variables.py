# SPDX-License-Identifier: Apache-2.0
"""Makes variables equal on all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from horo._sets import global_process_set, of
from horo.tensorflow import _names, _ops
from horo.tensorflow._errors import not_converted
from horo._native import BROADCAST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from horo._sets import ProcessSet


def value_of(variable):
    """The value of a variable of TensorFlow or of Keras, as a tensor."""
    value = getattr(variable, "value", variable)
    return value() if callable(value) else value


@not_converted
def broadcast_variables(
    variables: Iterable[Any],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> Any:
    """Assigns the root's values to the variables of every rank. All ranks give the same variables in
    the same order. In a graph of TensorFlow 1 it returns the op that does so. `inplace` has no
    effect: values are read and assigned without a further copy where TensorFlow allows it."""
    del inplace
    given, group = list(variables), of(process_set)
    at_once = tf.compat.v1.executing_eagerly_outside_functions()
    if not given:
        return None if at_once else tf.no_op()
    pairs = [_ops.as_bits(value_of(one), f"variable {one.name}") for one in given]
    name = _names.call_name(BROADCAST, None) or "variables"
    parts = tuple(str(index) for index in range(len(given)))
    tensors = [tensor for tensor, _ in pairs]
    values = _ops.broadcast(tensors, root_rank, _ops.Group(group, name, False, parts))
    assigned = [
        variable.assign(_ops.from_bits(value, dtype))
        for variable, value, (_, dtype) in zip(given, values, pairs)
    ]
    return None if at_once else tf.group(*assigned)


def broadcast_(
    variables: Iterable[Any],
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Like broadcast_variables; returns the variables."""
    del name
    listed = list(variables)
    done = broadcast_variables(listed, root_rank, process_set)
    if done is None:
        return listed
    with tf.control_dependencies([done]):
        return [tf.identity(one) for one in listed]


def broadcast_global_variables(root_rank: int) -> Any:
    """The op that broadcasts all global variables of a graph of TensorFlow 1."""
    if tf.executing_eagerly():
        raise RuntimeError(
            "horo.broadcast_global_variables() needs a graph of TensorFlow 1: eager programs have no "
            "list of all variables; give them to horo.broadcast_variables()"
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Broadcasts all global variables when a session of TensorFlow 1 begins, after they were
    initialised or loaded."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        del device
        super().__init__()
        self.root_rank = root_rank
        self.bcast_op: Any = None

    def begin(self) -> None:
        """A new graph needs its own op."""
        if self.bcast_op is None or self.bcast_op.graph is not tf.compat.v1.get_default_graph():
            self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        session.run(self.bcast_op)
