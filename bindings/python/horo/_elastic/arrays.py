# SPDX-License-Identifier: Apache-2.0
"""A state that keeps arrays besides its values, for frameworks whose variables are read and written as
numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

import horo.numpy as collectives
from horo import _job
from horo._elastic.standing import Choice
from horo._elastic.state import ObjectState, send_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    Arrays = Sequence[Any]


def broadcast_arrays(arrays: Arrays, source: int, name: str) -> list[Any]:
    """The arrays of rank `source` on every rank, as new arrays. Their number, shapes and dtypes must be
    equal on all ranks. Fails: MismatchError."""
    made = [numpy.array(one) for one in arrays]
    handles = [
        collectives.broadcast_async_(one.reshape(-1).view(numpy.uint8), source, f"{name}.{place}")
        for place, one in enumerate(made)
        if one.size
    ]
    for handle in handles:
        collectives.synchronize(handle)
    return made


class ArraysState(ObjectState):
    """ObjectState with the arrays that _read_arrays() gives and _write_arrays() takes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._saved_arrays: list[Any] = []

    def _read_arrays(self) -> Arrays:
        raise NotImplementedError

    def _write_arrays(self, arrays: Arrays) -> None:
        raise NotImplementedError

    def save(self) -> None:
        """Keeps copies of the arrays and the values, for restore()."""
        self._saved_arrays = [numpy.array(one) for one in self._read_arrays()]
        super().save()

    def restore(self) -> None:
        """Goes back to the last copies. Before the first save() the arrays stay as they are."""
        if self._saved_arrays:
            self._write_arrays(self._saved_arrays)
        super().restore()

    def _exchange(self, choice: Choice) -> None:
        own = [numpy.asarray(one) for one in self._read_arrays()]
        layout = [(one.shape, str(one.dtype)) for one in own]
        known = send_object(layout, choice.source, "elastic.layout")
        # All ranks take part in the broadcasts, so that one whose variables differ stops no other.
        fits = known == layout
        if not fits:
            own = [numpy.zeros(shape, dtype) for shape, dtype in known]
        arrays = broadcast_arrays(own, choice.source, "elastic.arrays")
        if not fits:
            raise ValueError(
                f"rank {_job.rank()} has {len(layout)} variables and rank {choice.source} has "
                f"{len(known)}, or their shapes differ: build the model and its optimizer before "
                "the state is made"
            )
        if _job.rank() in choice.receivers:
            self._write_arrays(arrays)
        super()._exchange(choice)

    def _synced(self):
        super()._synced()
        self._saved_arrays = [numpy.array(one) for one in self._read_arrays()]

    # -- Files -----------------------------------------------------------------------------------

    def _content(self):
        arrays = [numpy.array(one) for one in self._read_arrays()]
        return {**super()._content(), "arrays": arrays}

    def _take(self, content):
        self._write_arrays(content["arrays"])
        super()._take(content)
