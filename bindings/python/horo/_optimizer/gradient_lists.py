# SPDX-License-Identifier: Apache-2.0
"""Reduces all gradients of a step in one call, for tapes and for optimizers that are given a list of
gradients. A framework has a subclass of ListReducer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from horo._arguments import AVERAGE, whole_number
from horo._elastic import generation
from horo._sets import global_process_set, of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from horo._sets import ProcessSet


def identity(variable: Any) -> int:
    """A number that only this variable has. A Keras variable has that of the variable of TensorFlow
    that it wraps; under other backends it wraps a value that changes."""
    value = getattr(variable, "_value", None)
    return id(value if hasattr(value, "handle") else variable)


def label(variable: Any, index: int) -> str:
    """The part of a gradient's name that says whose it is."""
    name = getattr(variable, "path", None) or getattr(variable, "name", None) or "gradient"
    return f"{index}.{name}"


class Rules(NamedTuple):
    """How gradients are reduced: the arguments of Horovod's tapes and optimizers for TensorFlow."""

    compression: Any
    sparse_as_dense: bool = False
    op: int = AVERAGE
    gradient_predivide_factor: float = 1.0
    num_groups: int = 0
    groups: Any = None
    process_set: ProcessSet = global_process_set
    scale_local_gradients: bool = True

    def checked(self) -> Rules:
        """Fails: ValueError (arguments that do not go together)."""
        factor = self.gradient_predivide_factor
        if factor != 1.0 and self.op != AVERAGE:
            raise ValueError("gradient_predivide_factor needs op=Average")
        if not factor > 0:
            raise ValueError(f"gradient_predivide_factor is {factor}; it must be positive")
        if self.groups is None:
            return self._replace(num_groups=whole_number(self.num_groups, "num_groups"))
        if isinstance(self.groups, (list, tuple)):
            return self
        return self._replace(num_groups=whole_number(self.groups, "groups"), groups=None)


class Bunch(NamedTuple):
    """Gradients that one call reduces. `indices`: their places in the list. `parts`: their names.
    `grouped`: they become ready together."""

    indices: list[int]
    parts: tuple[str, ...]
    grouped: bool


class ListReducer:
    """Reduces lists of gradients by the same rules. Methods without a body are the framework's."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules.checked()
        self._local: dict[int, Any] = {}  # identity -> variable, which stays alive

    # -- The framework ---------------------------------------------------------------------------

    def base_name(self) -> str:
        """The name of this step's gradients, equal on all ranks."""
        return "gradients"

    def one_by_one(self) -> bool:
        """Whether each gradient has a call of its own, because it may be there before the others."""
        return False

    def is_sparse(self, gradient: Any) -> bool:
        del gradient
        return False

    def dense(self, gradient: Any) -> Any:
        """A gradient as a dense tensor."""
        return gradient

    def divided(self, gradient: Any) -> Any:
        """A gradient divided by the number of ranks."""
        raise NotImplementedError

    def reduce_sparse(self, gradient: Any, name: str) -> Any:
        raise NotImplementedError

    def reduce_dense(self, gradients: list[Any], base: str, bunch: Bunch) -> list[Any]:
        raise NotImplementedError

    # -- All frameworks --------------------------------------------------------------------------

    def keep_local(self, variables: Iterable[Any]) -> None:
        """Gradients of these variables are not reduced."""
        self._local.update((identity(one), one) for one in variables)

    def alone(self) -> bool:
        """Whether no other rank takes part, now or later."""
        whole = self.rules.process_set is global_process_set
        return of(self.rules.process_set).size() == 1 and not (whole and generation.is_elastic())

    def reduce(self, gradients: Iterable[Any], variables: Iterable[Any]) -> list[Any]:
        """The reduced gradients; None stays None. `variables`: whose they are."""
        results, owners = list(gradients), list(variables)
        if self.alone():
            return results
        base, places = self.base_name(), []
        for index, (gradient, owner) in enumerate(zip(results, owners)):
            if gradient is None:
                continue
            if identity(owner) in self._local:
                scaled = self.rules.scale_local_gradients
                results[index] = self.divided(gradient) if scaled else gradient
            elif self.is_sparse(gradient) and not self.rules.sparse_as_dense:
                results[index] = self.reduce_sparse(gradient, f"{base}.{label(owner, index)}")
            else:
                places.append(index)
        inputs = {index: self.dense(results[index]) for index in places}
        for bunch in self._bunches(places, owners):
            given = [inputs[index] for index in bunch.indices]
            for index, reduced in zip(bunch.indices, self.reduce_dense(given, base, bunch)):
                results[index] = reduced
        return results

    def together(self, indices: list[int], owners: list[Any], grouped: bool = False) -> Bunch:
        """The gradients at these places as one bunch."""
        return Bunch(indices, tuple(label(owners[one], one) for one in indices), grouped)

    def _bunches(self, places, owners):
        if not places:
            return []
        if self.rules.groups is not None:
            given = self._given_groups(places, owners)
            return [self.together(members, owners, grouped) for members, grouped in given]
        if self.rules.num_groups > 0:
            parts = split(places, self.rules.num_groups)
            return [self.together(part, owners, True) for part in parts]
        if self.one_by_one():
            return [self.together([index], owners) for index in places]
        return [self.together(places, owners)]

    def _given_groups(self, places, owners):
        """(members, whether they are a group), for lists of variables. Others are alone."""
        found = {identity(owners[index]): index for index in places}
        groups = []
        for group in self.rules.groups:
            ids = [identity(one) for one in group]
            members = [found.pop(one) for one in dict.fromkeys(ids) if one in found]
            if members:
                groups.append((members, True))
        return groups + [([index], False) for index in found.values()]


def split(items: list[Any], parts: int) -> list[list[Any]]:
    """`items` in at most `parts` runs whose lengths differ by one at most."""
    parts = min(parts, len(items))
    ends = [len(items) * (index + 1) // parts for index in range(parts)]
    return [items[begin:end] for begin, end in zip([0, *ends], ends)]
