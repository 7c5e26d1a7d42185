# SPDX-License-Identifier: Apache-2.0
"""DistributedGradientTape: a tape whose gradients are those of all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from horo._arguments import AVERAGE
from horo._optimizer.gradient_lists import Rules
from horo._sets import global_process_set
from horo.tensorflow._compression import Compression
from horo.tensorflow._errors import not_converted
from horo.tensorflow._reduction import GradientReducer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from horo._sets import ProcessSet


class _Distributed:
    """Comes before the class of the user's tape."""

    _horo_reducer: GradientReducer

    def register_local_source(self, source: Any) -> None:
        """The gradient of this source is not reduced."""
        self._horo_reducer.keep_local([source])

    @not_converted
    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """Like tf.GradientTape.gradient(), reduced over all ranks."""
        gradients = super().gradient(target, sources, *args, **kwargs)  # type: ignore[misc]
        flat = tf.nest.flatten(sources)
        # IndexedSlices are composite: flatten_up_to keeps them whole.
        found = list(_up_to(sources, gradients))
        return tf.nest.pack_sequence_as(sources, self._horo_reducer.reduce(found, flat))


def _up_to(sources, gradients):
    """The gradients in the order of tf.nest.flatten(sources)."""
    if isinstance(sources, dict):
        for key in sorted(sources):
            yield from _up_to(sources[key], gradients[key])
    elif isinstance(sources, (list, tuple)):
        for source, gradient in zip(sources, gradients):
            yield from _up_to(source, gradient)
    else:
        yield gradients


def _distributed(tape, rules, local):
    cls = type(tape.__class__.__name__, (_Distributed, tape.__class__), {})
    made: Any = object.__new__(cls)
    made.__dict__ = tape.__dict__  # one recording, whichever of both records
    made._horo_reducer = GradientReducer(rules)
    made._horo_reducer.keep_local(local)
    return made


def DistributedGradientTape(
    gradtape: tf.GradientTape,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = AVERAGE,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """A tape that continues `gradtape` and whose gradient() averages over all ranks:

        with tf.GradientTape() as tape:
            loss = ...
        tape = horo.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)

    Inside a tf.function each gradient travels while the others are still computed. `groups`: a number
    of groups, or lists of variables, whose gradients become ready together."""
    del device_dense, device_sparse
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
    return _distributed(gradtape, rules, [])


def PartialDistributedGradientTape(
    gradtape: tf.GradientTape,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = AVERAGE,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """Like DistributedGradientTape. The gradients of `local_layers`, a layer or a list of layers, are
    not reduced; they are divided by the number of ranks unless `scale_local_gradients` is False."""
    del device_dense, device_sparse
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
    return _distributed(gradtape, rules, weights_of(local_layers))


def weights_of(layers: Any) -> Iterable[Any]:
    """The trainable weights of a layer, or of a list of layers; None for no layer."""
    if layers is None:
        return []
    listed = layers if isinstance(layers, (list, tuple, set)) else [layers]
    return [weight for layer in listed for weight in layer.trainable_weights]
