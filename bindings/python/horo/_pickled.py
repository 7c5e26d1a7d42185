# SPDX-License-Identifier: Apache-2.0
"""Objects as bytes. Where one rank's cannot be pickled the others must hear of it, or they wait."""

from __future__ import annotations

import io
import pickle
from typing import Any

from horo import errors


class Refused:
    """Travels in place of an object that could not be pickled, or moved."""

    def __init__(self, reason):
        self.reason = reason


def dumps(obj: Any) -> memoryview:
    """Pickled; what pickle refuses, such as a lambda, by cloudpickle where it is there."""
    buffer = io.BytesIO()
    try:
        pickle.dump(obj, buffer, pickle.HIGHEST_PROTOCOL)
    except Exception:
        try:
            import cloudpickle
        except ImportError:
            cloudpickle = None
        if cloudpickle is None:
            raise
        buffer = io.BytesIO()
        cloudpickle.dump(obj, buffer)
    return buffer.getbuffer()


def dumps_or_refused(obj):
    """The bytes of the object, or of a Refused and the error that says why."""
    try:
        return dumps(obj), None
    except Exception as error:
        return dumps(Refused(f"{type(error).__name__}: {error}")), error


def loads_all(blob, lengths, problem):
    """The objects of all ranks, which lie one after the other in `blob`. Fails: `problem`, this
    rank's own, and HoroError, where another rank's could not be pickled."""
    if problem is not None:
        raise problem
    objects, start = [], 0
    for number, length in enumerate(lengths):
        objects.append(pickle.loads(blob[start : start + length]))
        start += length
        if isinstance(objects[-1], Refused):
            raise errors.HoroError(
                f"rank {number} of the process set could not pickle its object: "
                f"{objects[-1].reason}"
            )
    return objects
