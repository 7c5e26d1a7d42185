# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer for optimizers of Keras and of TensorFlow 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from horo._arguments import AVERAGE
from horo._optimizer.gradient_lists import Rules
from horo._optimizer.reducer import whole_passes
from horo._sets import global_process_set
from horo.tensorflow._compression import Compression
from horo.tensorflow._reduction import GradientReducer

if TYPE_CHECKING:
    from horo._sets import ProcessSet


class _Version1(tf.compat.v1.train.Optimizer):
    """An optimizer of TensorFlow 1 whose gradients are those of all ranks."""

    def __init__(self, optimizer, name, rules, use_locking):
        super().__init__(use_locking, name or f"Distributed{type(optimizer).__name__}")
        self._optimizer = optimizer
        self._reducer = GradientReducer(rules)

    def register_local_var(self, variable):
        """The gradient of this variable is not reduced."""
        self._reducer.keep_local([variable])

    def compute_gradients(self, *args, **kwargs):
        """Like that of the optimizer, reduced over all ranks."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        gradients, variables = [one for one, _ in pairs], [one for _, one in pairs]
        return list(zip(self._reducer.reduce(gradients, variables), variables))

    def apply_gradients(self, *args, **kwargs):
        return self._optimizer.apply_gradients(*args, **kwargs)

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


def DistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: int = AVERAGE,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """An optimizer that averages gradients over all ranks before it applies them. `optimizer` is one
    of Keras, as for horo.keras.DistributedOptimizer, or of tf.compat.v1.train."""
    del device_dense, device_sparse
    passes = whole_passes(backward_passes_per_step)
    rules = Rules(
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        if passes > 1:
            raise NotImplementedError("backward_passes_per_step needs an optimizer of Keras")
        return _Version1(optimizer, name, rules, use_locking)
    from horo.keras._optimizer import distributed  # Keras takes long to import

    return distributed(optimizer, rules, passes, average_aggregated_gradients)
