# SPDX-License-Identifier: Apache-2.0
"""Gradients of all ranks: wrappers of jax.value_and_grad and of optax's optimizers. optax itself is
not needed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from horo._arguments import AVERAGE, SUM, resolve_op
from horo._sets import global_process_set
from horo.jax._compression import Compression
from horo.jax._jax import jax
from horo.jax._sites import site
from horo.jax._trees import allreduce_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from horo._sets import ProcessSet
    from horo.jax._compression import Compressor


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    op: int | None = None,
    compression: type[Compressor] = Compression.none,
    average_value: bool = False,
    process_set: ProcessSet | None = None,
    wire_dtype: Any = None,
    **options: Any,
) -> Callable[..., Any]:
    """Like jax.value_and_grad, with gradients that are reduced over the ranks: averaged, unless
    `op` says otherwise. The value is this rank's own, or the average with `average_value`.
    `options` go to jax.value_and_grad."""
    inner = jax.value_and_grad(fun, argnums, has_aux, **options)
    label = f"{getattr(fun, '__name__', 'gradients')}@{site(None)}"

    @functools.wraps(fun)
    def both(*args: Any, **kwargs: Any) -> Any:
        value, gradients = inner(*args, **kwargs)
        more = {"process_set": process_set, "wire_dtype": wire_dtype}
        gradients = allreduce_tree(gradients, f"{label}.gradients", op, compression, **more)
        if average_value:
            loss = value[0] if has_aux else value
            loss = allreduce_tree(loss, f"{label}.value", AVERAGE, process_set=process_set)
            value = (loss, value[1]) if has_aux else loss
        return value, gradients

    return both


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **options: Any,
) -> Callable[..., Any]:
    """Like jax.grad, with gradients that are reduced over the ranks. `options`: those of
    value_and_grad()."""
    both = value_and_grad(fun, argnums, has_aux, **options)

    @functools.wraps(fun)
    def only(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return only


def _predivided(op, factor, size):
    """(op, prescale, postscale) for gradients that are divided before and after they are summed."""
    if factor == 1.0:
        return op, 1.0, 1.0
    if op != AVERAGE:
        raise ValueError(
            f"gradient_predivide_factor is {factor}; it needs op=Average, or leave it at 1.0"
        )
    return SUM, 1.0 / factor, factor / size


def _check(optimizer, passes):
    """Fails: ValueError."""
    if not (hasattr(optimizer, "init") and hasattr(optimizer, "update")):
        raise ValueError(
            f"a {type(optimizer).__name__} is no optimizer: it has no init and update, as an "
            "optax.GradientTransformation has"
        )
    if passes < 1:
        raise ValueError(f"backward_passes_per_step is {passes}; it must be 1 or more")


def DistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int | None = None,
    gradient_predivide_factor: float = 1.0,
    process_set: ProcessSet | None = None,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> Any:
    """An optax.GradientTransformation whose update() first reduces the gradients over the ranks.
    It works inside jit and outside. With `backward_passes_per_step` = k, gradients are collected
    for k calls and reduced once; the other calls return updates of zero (by optax.MultiSteps).
    Fails: ValueError (`optimizer` has no init and update)."""
    _check(optimizer, backward_passes_per_step)
    op = resolve_op(None, op)
    label = f"optimizer@{site(None)}" if name is None else name

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> Any:
        size = (process_set or global_process_set).size() or 1
        own_op, prescale, postscale = _predivided(op, gradient_predivide_factor, size)
        more = {"wire_dtype": wire_dtype, "error_feedback": error_feedback}
        updates = allreduce_tree(
            *(updates, label, own_op, compression, prescale, postscale, process_set), **more
        )
        return optimizer.update(updates, state, params, **extra)

    if backward_passes_per_step == 1:
        return _like(optimizer, optimizer.init, update)
    import optax

    inner = optax.GradientTransformationExtraArgs(optimizer.init, update)
    steps = optax.MultiSteps(inner, every_k_schedule=backward_passes_per_step)
    return _like(optimizer, steps.init, steps.update)


def _like(optimizer, init, update):
    """An optimizer of the same class: a named tuple in optax."""
    if isinstance(optimizer, tuple):
        cls: Any = type(optimizer)
        return cls(init, update)
    made = type("DistributedOptimizer", (), {})()
    made.init, made.update = init, update
    return made
