# SPDX-License-Identifier: Apache-2.0
"""The collectives as a user calls them, for any framework.

A framework's module makes one Collectives of its Face and exports the methods as its functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from horo import _sets
from horo._arguments import resolve_op, resolve_wire
from horo._handles import synchronize
from horo._operations import Operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from horo._face import Face
    from horo._sets import ProcessSet

Given = TypeVar("Given")  # what a user may pass
Array = TypeVar("Array")  # what a user gets


class Collectives(Generic[Given, Array]):
    """All collectives on the arrays of one Face. `module` is the name of the module that exports
    the methods, and `name` the Collectives' own name there: pickle finds the functions by them."""

    def __init__(self, face: Face, module: str, name: str) -> None:
        self._face = face
        self._operations = Operations(face)
        self.__module__ = module
        self._name = name

    def __reduce__(self) -> str:
        return self._name

    # -- Allreduce -------------------------------------------------------------------------------

    def allreduce_async(
        self,
        array: Given,
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
        wire_dtype: Any = None,
        error_feedback: bool | None = None,
    ) -> int:
        """Starts reducing into a new array. `array` must not change until the operation ends."""
        names, source = _sets.of(process_set), self._face.array(array)
        target, factors = self._face.empty_like(source), (prescale_factor, postscale_factor)
        op = resolve_op(None, op)
        wire = resolve_wire(wire_dtype, error_feedback)
        return self._operations.start_allreduce(
            source, target, names, name, op, *factors, wire
        )

    def allreduce_async_(
        self,
        array: Given,
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
        wire_dtype: Any = None,
        error_feedback: bool | None = None,
    ) -> int:
        """Starts reducing in place. synchronize() returns an array over the same memory."""
        names, source = _sets.of(process_set), self._face.writable(array)
        op, factors = resolve_op(None, op), (prescale_factor, postscale_factor)
        wire = resolve_wire(wire_dtype, error_feedback)
        return self._operations.start_allreduce(
            source, source, names, name, op, *factors, wire
        )

    def allreduce(
        self,
        array: Given,
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
        wire_dtype: Any = None,
        error_feedback: bool | None = None,
    ) -> Array:
        """Reduces the arrays of all ranks and returns the result: their average, unless `op` says
        otherwise."""
        factors, wire = (prescale_factor, postscale_factor), (wire_dtype, error_feedback)
        return synchronize(
            self.allreduce_async(array, name, op, *factors, process_set, *wire)
        )

    def allreduce_(
        self,
        array: Given,
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
        wire_dtype: Any = None,
        error_feedback: bool | None = None,
    ) -> Array:
        """Like allreduce, in place."""
        factors, wire = (prescale_factor, postscale_factor), (wire_dtype, error_feedback)
        return synchronize(
            self.allreduce_async_(array, name, op, *factors, process_set, *wire)
        )

    def grouped_allreduce_async(
        self,
        arrays: Iterable[Given],
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
        wire_dtype: Any = None,
        error_feedback: bool | None = None,
    ) -> int:
        """Starts reducing several arrays, which become ready together. Returns one handle, whose
        result is a list."""
        names, sources = _sets.of(process_set), [self._face.array(array) for array in arrays]
        targets = [self._face.empty_like(source) for source in sources]
        op, factors = resolve_op(None, op), (prescale_factor, postscale_factor)
        wire = resolve_wire(wire_dtype, error_feedback)
        return self._operations.start_allreduces(sources, targets, names, name, op, factors, wire)

    def grouped_allreduce_async_(
        self,
        arrays: Iterable[Given],
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
        wire_dtype: Any = None,
        error_feedback: bool | None = None,
    ) -> int:
        """Like grouped_allreduce_async, in place."""
        names, sources = _sets.of(process_set), [self._face.writable(array) for array in arrays]
        op, factors = resolve_op(None, op), (prescale_factor, postscale_factor)
        wire = resolve_wire(wire_dtype, error_feedback)
        return self._operations.start_allreduces(sources, sources, names, name, op, factors, wire)

    def grouped_allreduce(
        self,
        arrays: Iterable[Given],
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
        wire_dtype: Any = None,
        error_feedback: bool | None = None,
    ) -> list[Array]:
        """Reduces several arrays together and returns a list."""
        factors, wire = (prescale_factor, postscale_factor), (wire_dtype, error_feedback)
        return synchronize(
            self.grouped_allreduce_async(arrays, name, op, *factors, process_set, *wire)
        )

    def grouped_allreduce_(
        self,
        arrays: Iterable[Given],
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
        wire_dtype: Any = None,
        error_feedback: bool | None = None,
    ) -> list[Array]:
        """Like grouped_allreduce, in place."""
        factors, wire = (prescale_factor, postscale_factor), (wire_dtype, error_feedback)
        return synchronize(
            self.grouped_allreduce_async_(arrays, name, op, *factors, process_set, *wire)
        )

    # -- Reducescatter ---------------------------------------------------------------------------

    def reducescatter_async(
        self,
        array: Given,
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
    ) -> int:
        """Starts reducing. Each rank gets its rows of the result."""
        names, source = _sets.of(process_set), self._face.array(array)
        op, factors = resolve_op(None, op), (prescale_factor, postscale_factor)
        return self._operations.start_reducescatter(source, names, name, op, *factors)

    def grouped_reducescatter_async(
        self,
        arrays: Iterable[Given],
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
    ) -> int:
        """Starts several reducescatters together. Returns one handle, whose result is a list."""
        names, sources = _sets.of(process_set), [self._face.array(array) for array in arrays]
        op, factors = resolve_op(None, op), (prescale_factor, postscale_factor)
        return self._operations.start_reducescatters(sources, names, name, op, factors)

    def reducescatter(
        self,
        array: Given,
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
    ) -> Array:
        """Reduces like allreduce and returns this rank's rows. Dimension 0 is divided in rank
        order; when it does not divide evenly, the first ranks get one row more."""
        factors = (prescale_factor, postscale_factor)
        return synchronize(self.reducescatter_async(array, name, op, *factors, process_set))

    def grouped_reducescatter(
        self,
        arrays: Iterable[Given],
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet | None = None,
    ) -> list[Array]:
        """Does several reducescatters together and returns a list."""
        factors = (prescale_factor, postscale_factor)
        handle = self.grouped_reducescatter_async(arrays, name, op, *factors, process_set)
        return synchronize(handle)

    # -- Allgather and alltoall ------------------------------------------------------------------

    def allgather_async(
        self, array: Given, name: str | None = None, process_set: ProcessSet | None = None
    ) -> int:
        """Starts concatenating along dimension 0, which may differ between ranks."""
        names, source = _sets.of(process_set), self._face.array(array)
        return self._operations.start_allgather(source, names, name)

    def grouped_allgather_async(
        self,
        arrays: Iterable[Given],
        name: str | None = None,
        process_set: ProcessSet | None = None,
    ) -> int:
        """Starts several allgathers together. Returns one handle, whose result is a list."""
        names, sources = _sets.of(process_set), [self._face.array(array) for array in arrays]
        return self._operations.start_allgathers(sources, names, name)

    def allgather(
        self, array: Given, name: str | None = None, process_set: ProcessSet | None = None
    ) -> Array:
        """The arrays of all ranks, concatenated along dimension 0 in rank order."""
        return synchronize(self.allgather_async(array, name, process_set))

    def grouped_allgather(
        self,
        arrays: Iterable[Given],
        name: str | None = None,
        process_set: ProcessSet | None = None,
    ) -> list[Array]:
        """Does several allgathers together and returns a list."""
        return synchronize(self.grouped_allgather_async(arrays, name, process_set))

    def alltoall_async(
        self,
        array: Given,
        splits: Sequence[int] | Array | None = None,
        name: str | None = None,
        process_set: ProcessSet | None = None,
    ) -> int:
        """Starts an alltoall. synchronize() returns (array, received splits)."""
        names, source = _sets.of(process_set), self._face.array(array)
        return self._operations.start_alltoall(source, splits, names, name)

    def alltoall(
        self,
        array: Given,
        splits: Sequence[int] | Array | None = None,
        name: str | None = None,
        process_set: ProcessSet | None = None,
    ) -> Any:
        """Sends `splits[r]` rows to rank r, or the same number of rows to every rank when there are
        no splits. Returns the received rows in rank order; with splits, the pair (rows, number of
        rows received from each rank)."""
        result = synchronize(self.alltoall_async(array, splits, name, process_set))
        return result[0] if splits is None else result

    # -- Broadcast -------------------------------------------------------------------------------

    def broadcast_async(
        self,
        array: Given,
        root_rank: int,
        name: str | None = None,
        process_set: ProcessSet | None = None,
    ) -> int:
        """Starts copying the root's array into a new one on every rank."""
        names, source = _sets.of(process_set), self._face.array(array)
        target = self._face.empty_like(source)
        return self._operations.start_broadcast(source, target, root_rank, names, name)

    def broadcast_async_(
        self,
        array: Given,
        root_rank: int,
        name: str | None = None,
        process_set: ProcessSet | None = None,
    ) -> int:
        """Starts copying the root's array to every rank, in place."""
        names, source = _sets.of(process_set), self._face.writable(array)
        return self._operations.start_broadcast(source, source, root_rank, names, name)

    def broadcast(
        self,
        array: Given,
        root_rank: int,
        name: str | None = None,
        process_set: ProcessSet | None = None,
    ) -> Array:
        """Returns the root's array on every rank, as a new one."""
        return synchronize(self.broadcast_async(array, root_rank, name, process_set))

    def broadcast_(
        self,
        array: Given,
        root_rank: int,
        name: str | None = None,
        process_set: ProcessSet | None = None,
    ) -> Array:
        """Copies the root's array to every rank, in place."""
        return synchronize(self.broadcast_async_(array, root_rank, name, process_set))
