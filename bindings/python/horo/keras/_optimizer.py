# SPDX-License-Identifier: Apache-2.0
"""Optimizers of Keras 3, on each of its backends, and of Keras 2, whose gradients are those of all
ranks.

Keras calls apply() (Keras 3) or apply_gradients() (Keras 2) on every backend and in every kind of
training. A subclass of the optimizer's class reduces the gradients there. It has the class's name and
module, so that a saved model loads without Horo."""

from __future__ import annotations

import functools
import sys
from typing import Any

from horo._optimizer.gradient_lists import Rules


def is_keras(optimizer: Any) -> bool:
    """Whether it is an optimizer of Keras 2 or 3."""
    return any(hasattr(optimizer, name) for name in ("apply", "apply_gradients")) and hasattr(
        optimizer, "get_config"
    )


def backend_of(optimizer: Any) -> str:
    """The backend that an optimizer computes with: "tensorflow", "jax" or "torch"."""
    if not hasattr(optimizer, "apply"):
        return "tensorflow"  # Keras 2
    package = next(
        one.__module__.partition(".")[0]
        for one in type(optimizer).__mro__
        if one.__module__.startswith(("keras.", "tf_keras."))
    )
    return sys.modules[package].config.backend()


def reducer_of(backend: str, rules: Rules) -> Any:
    """The reducer for a backend of Keras. Fails: ValueError (the backend cannot train)."""
    if backend == "tensorflow":
        from horo.tensorflow._reduction import GradientReducer

        return GradientReducer(rules)
    if backend == "jax":
        from horo.keras._jax import GradientReducer as OnJax

        return OnJax(rules)
    if backend == "torch":
        from horo.keras._torch import GradientReducer as OnTorch

        return OnTorch(rules)
    raise ValueError(f"Keras' backend {backend!r} cannot train; use tensorflow, jax or torch")


class _Settings:
    """Holds the reducer of one distributed optimizer, and how many passes make a step."""

    def __init__(self, backend, rules, passes, average_passes):
        self.reducer = reducer_of(backend, rules)
        self.backend = backend
        self.passes = passes
        self.average_passes = average_passes
        self.adder: Any = None  # what adds up the gradients of several passes
        if passes > 1 and backend == "tensorflow":
            from horo.tensorflow._passes import Passes

            self.adder = Passes(passes, average_passes)
        elif passes > 1 and backend == "torch":
            from horo.keras._torch import Passes as OnTorch

            self.adder = OnTorch(passes, average_passes)


class _Distributed:
    """Comes before the class of the user's optimizer."""

    _horo: _Settings

    def _reduced(self, gradients, variables):
        return self._horo.reducer.reduce(list(gradients), list(variables))

    def _own(self, version) -> Any:
        """The methods of the user's class."""
        return super(version, self)

    def register_local_var(self, variable: Any) -> None:
        """The gradient of this variable is not reduced."""
        self._horo.reducer.keep_local([variable])

    def __reduce_ex__(self, protocol: Any) -> Any:
        settings = self._horo
        base = type(self).__mro__[2]
        arguments = (settings.reducer.rules, settings.passes, settings.average_passes)
        return _again, (base, self.get_config(), *arguments)  # type: ignore[attr-defined]


def _again(base, config, rules, passes, average_passes):
    return distributed(base.from_config(config), rules, passes, average_passes)


class _Version3(_Distributed):
    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """Reduces the gradients over all ranks and applies them."""
        settings, grads = self._horo, list(grads)
        given = trainable_variables
        variables = list(self._trainable_variables if given is None else given)  # type: ignore

        def step(gradients):
            return self._own(_Version3).apply(self._reduced(gradients, variables), given)

        if settings.adder is not None:
            with_variables = not self.built  # type: ignore[attr-defined]
            if with_variables:
                self.build(variables)  # type: ignore[attr-defined]
            return settings.adder.run(grads, variables, step)
        if settings.passes > 1 and not settings.average_passes:
            # Keras averages over the passes; Horovod adds them up.
            grads = [None if one is None else one * settings.passes for one in grads]
        return step(grads)


class _Version2(_Distributed):
    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        """Reduces the gradients over all ranks and applies them."""
        pairs = list(grads_and_vars)
        gradients, variables = [one for one, _ in pairs], [one for _, one in pairs]

        def step(given):
            reduced = self._reduced(given, variables)
            return self._own(_Version2).apply_gradients(zip(reduced, variables), *args, **kwargs)

        adder = self._horo.adder
        if adder is None:
            return step(gradients)
        self._make_variables(variables)
        adder.run(gradients, variables, step)
        return self.iterations  # type: ignore[attr-defined]

    def _make_variables(self, variables):
        """In a branch of a function no variable can be made."""
        import tensorflow as tf

        with tf.init_scope():
            if hasattr(self, "build"):
                self.build(variables)
            else:
                self._create_all_weights(variables)  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=None)
def _class_of(base):
    mixin = _Version3 if hasattr(base, "apply") else _Version2
    made = type(base.__name__, (mixin, base), {})
    made.__module__, made.__qualname__ = base.__module__, base.__qualname__
    return made


def distributed(optimizer: Any, rules: Rules, passes: int = 1, average_passes: bool = False) -> Any:
    """The optimizer as one that reduces over all ranks. Both share all state. Fails: ValueError (it is
    not an optimizer of Keras, or reduces already)."""
    if not is_keras(optimizer):
        raise ValueError(f"{type(optimizer).__name__} is not an optimizer of Keras")
    if isinstance(optimizer, _Distributed):
        raise ValueError("the optimizer is a DistributedOptimizer already")
    backend = backend_of(optimizer)
    settings = _Settings(backend, rules, passes, average_passes)
    if passes > 1 and backend == "jax":
        _accumulate(optimizer, passes)
    base: Any = type(optimizer)
    cls = _class_of(base)
    made = object.__new__(cls)
    object.__setattr__(made, "__dict__", optimizer.__dict__)  # Keras tracks other assignments
    made.__dict__["_horo"] = settings  # not tracked as a part of the model
    return made


def _accumulate(optimizer, passes):
    """Keras itself adds up gradients under JAX. Its optimizer makes the memory when it is built."""
    if optimizer.built:
        raise ValueError(
            "backward_passes_per_step under JAX needs an optimizer that is not built yet; wrap it "
            "before model.compile(), or make it with gradient_accumulation_steps"
        )
    optimizer.gradient_accumulation_steps = passes
