# SPDX-License-Identifier: Apache-2.0
"""Tensors in the memory of GPUs: on which stream one is ready, and how its operation ends.

A framework registers one Kind for each type of device that the runtime can reach. A submission then
names the device and the calling thread's current stream there; nobody waits. When the operation is
waited for, the current stream waits for its result, and the program goes on.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from horo import _handles
from horo._failures import failure
from horo._native import DEVICE, UNAVAILABLE, slow

if TYPE_CHECKING:
    from collections.abc import Callable

IN_DEVICE = "device"  # the last item of the signature of a name whose tensor is in device memory


_kinds: list[Kind] = []


def streams() -> set[int]:
    """The streams on which buffers of operations were ready."""
    return {place.submitted for kind in _kinds for place in kind.places.values()}


class Kind:
    """One type of device of one framework."""

    __slots__ = (
        "_streams",
        "_usable",
        "alias",
        "follow",
        "library",
        "name",
        "note_use",
        "places",
        "stream",
    )

    def __init__(
        self,
        name: str,
        stream: Callable[[int], int],
        note_use: Callable[[Any, int], object] | None,
        alias: Callable[[int, tuple[int, ...], Any], Any] | None,
        follow: Callable[[int, int], object] | None = None,
        library: str = "cuda",
    ) -> None:
        """`name`: as the framework calls it. `stream(index)`: the handle of the calling thread's
        current stream of the device `index`, a cudaStream_t. `note_use(memory, index)`: memory (of
        Face.memory()) is used again only behind the work that is now on that stream; None: the
        framework cannot do that, so memory stays alive until its operations are complete.
        `alias(address, shape, like)`: an array over memory that is owned elsewhere. `follow(index,
        stream)`: the current stream waits for the work that is now on another one; None: the
        framework has no such streams. `library`: whose streams and memory these are, "cuda" for
        CUDA's driver or "rocm" for HIP's runtime."""
        self.name, self.stream = name, stream
        self.note_use, self.alias = note_use, alias
        self.follow = follow
        # By device and stream: those that the runtime reaches, and all.
        self.places: dict[tuple[int, int], Place] = {}
        self._streams: dict[tuple[int, int], Place] = {}
        self.library = library
        self._usable: bool | None = None
        _kinds.append(self)

    def place(self, index: int) -> Place | None:
        """The place of an array on this device that is ready on its current stream. None: the
        runtime cannot reach it, and arrays are copied to the host."""
        stream = self.stream(index)
        found = self.places.get((index, stream))
        if found is None and self.usable():
            found = self.places[index, stream] = self.at(index)
        return found

    def at(self, index: int) -> Place:
        """Like place(), also for a device that the runtime cannot reach."""
        stream = self.stream(index)
        found = self._streams.get((index, stream))
        if found is None:
            found = self._streams[index, stream] = Place(self, index, stream)
        return found

    def usable(self) -> bool:
        """Whether the runtime reaches memory of such devices; the first answer counts. If not, a
        warning says why. Fails: StartError (HORO_GPU_OPERATIONS asks for a way that needs it)."""
        if self._usable is None:
            self._usable = self._look()
        return self._usable

    def _look(self):
        status = slow.horo_device_support(self.library.encode())
        if not status:
            return True
        error = failure(status)
        if status != UNAVAILABLE or os.environ.get("HORO_GPU_OPERATIONS", "auto") != "auto":
            raise error
        warnings.warn(
            f"tensors on {self.name} devices are copied through the host's memory: {error}",
            RuntimeWarning,
            stacklevel=6,
        )
        return False


class Place:
    """A device, and the stream on which an operation's buffers were ready when it was submitted. It
    is the finish function of operations in PENDING that need nothing but to be waited for."""

    __slots__ = ("kind", "index", "submitted")

    def __init__(self, kind: Kind, index: int, submitted: int) -> None:
        self.kind, self.index, self.submitted = kind, index, submitted

    def __repr__(self) -> str:
        return f"{self.kind.name}:{self.index}"

    def precede(self, memory: list[Any]) -> None:
        """Lets the current stream of the device read memory that is ready here."""
        kind = self.kind
        if kind.follow is None or kind.stream(self.index) == self.submitted:
            return
        kind.follow(self.index, self.submitted)
        self._note(memory)

    def wait(self, handle: int) -> int:
        """Lets the current stream wait for the operation, and returns its status. leave() must
        follow if that is OK. Blocks: until the operation's work is on the device."""
        return _handles.wait_stream(handle, self.kind.stream(self.index))

    def wait_all(self, operations: Any) -> int:
        """wait() for an array of handles; the first error, or OK. leave_all() must follow."""
        return _handles.wait_stream_all(operations, self.kind.stream(self.index))

    def leave(self, handle: int, *memory: Any) -> None:
        """Lets go of an operation for which wait() has returned OK. `memory`: of its buffers. Fails:
        with an error that the device has met since, in this operation or in one before."""
        self._note(memory)
        _handles.retire(handle, memory if self.kind.note_use is None else None)
        error = _handles.late_error((handle,))
        if error is not None:
            raise error

    def leave_all(self, operations: Any, memory: list[Any], failed: bool) -> Exception | None:
        """leave() for an array of handles; it returns the error. `failed`: wait_all() has returned
        an error."""
        self._note(memory)
        keeps = failed or self.kind.note_use is None
        for handle, one in zip(operations, memory):
            (_handles.drop if failed else _handles.retire)(handle, one if keeps else None)
        return None if failed else _handles.late_error(operations)

    def _note(self, memory):
        """Memory is used again behind what is now on the current stream. That is so by itself if it
        is the stream of the submission."""
        note_use = self.kind.note_use
        if note_use is not None and self.kind.stream(self.index) != self.submitted:
            for one in memory:
                note_use(one, self.index)

    def __call__(self, handle: int, item: Any, status: int | None = None) -> Any:
        output, kept, _ = item
        if status is None:
            status = self.wait(handle)
        if status:
            _handles.raise_failure(handle, status)
        self.leave(handle, *(kept if isinstance(kept, tuple) else (kept,)))
        return output


def memory_word(place: Place | None) -> tuple[str, ...]:
    """The item that a place adds to a signature."""
    return () if place is None else (IN_DEVICE,)


def memory_of(place: Place | None) -> int:
    """horo_memory"""
    return 0 if place is None else DEVICE
