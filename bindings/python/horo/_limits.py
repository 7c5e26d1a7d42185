# SPDX-License-Identifier: Apache-2.0
"""Names of the wider interface that this version refuses, in words rather than by their absence."""

from horo import _core, _native


def unavailable(name):
    """A function of the wider interface that this version does not have."""

    def refuse(*_args, **_kwargs):
        raise NotImplementedError(f"{name} is not part of Horo {_native.version}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"{name} is not part of this version: NotImplementedError."
    return refuse


class ProcessSet:
    """Ranks that a collective runs on. Only the set of all ranks exists in this version."""

    process_set_id = 0

    def __init__(self, *_ranks):
        raise NotImplementedError(f"process sets are not part of Horo {_native.version}")

    def size(self):
        return _core.size()

    def rank(self):
        return _core.rank()

    def included(self):
        return True


global_process_set = object.__new__(ProcessSet)


def check_process_set(process_set):
    if process_set is not None and process_set is not global_process_set:
        raise NotImplementedError(
            f"process_set {process_set!r}: only the global process set exists in this version"
        )
