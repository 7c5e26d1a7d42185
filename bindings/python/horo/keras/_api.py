# SPDX-License-Identifier: Apache-2.0
"""The functions that horo.keras and horo.tensorflow.keras share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horo._arguments import AVERAGE
from horo._optimizer.gradient_lists import Rules
from horo._optimizer.reducer import whole_passes
from horo._sets import global_process_set
from horo.keras._compression import Compression
from horo.keras._optimizer import distributed

if TYPE_CHECKING:
    from horo._sets import ProcessSet


def DistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = AVERAGE,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """The optimizer as one that averages gradients over all ranks before it applies them. Both share
    all state. It works in fit() and in loops of your own that call apply() or apply_gradients().

    `backward_passes_per_step`: it steps with the sum of the gradients of so many batches, or with
    their average if `average_aggregated_gradients`. `groups`: a number of groups, or lists of
    variables, whose gradients become ready together. With mixed_float16, wrap a
    keras.optimizers.LossScaleOptimizer, so that all ranks skip the same steps."""
    del name, device_dense, device_sparse
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
    passes = whole_passes(backward_passes_per_step)
    return distributed(optimizer, rules, passes, average_aggregated_gradients)


def PartialDistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = AVERAGE,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """Like DistributedOptimizer. The gradients of `local_layers`, a built layer or a list of them, are
    not reduced; they are divided by the number of ranks unless `scale_local_gradients` is False."""
    made = DistributedOptimizer(
        optimizer,
        name,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        gradient_predivide_factor,
        op,
        backward_passes_per_step,
        average_aggregated_gradients,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    listed = local_layers if isinstance(local_layers, (list, tuple, set)) else [local_layers]
    for layer in listed:
        for weight in [] if layer is None else layer.trainable_weights:
            made.register_local_var(weight)
    return made


def load_with(models: Any, filepath: Any, custom_objects: Any, compression: Any) -> Any:
    """A saved model whose optimizer reduces over all ranks. `models`: the module of its Keras."""
    model = models.load_model(filepath, custom_objects=custom_objects)
    if getattr(model, "optimizer", None) is not None:
        # One object, since Keras holds the optimizer in several places.
        made = distributed(model.optimizer, Rules(compression))
        model.optimizer = made
    return model
