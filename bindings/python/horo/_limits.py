# SPDX-License-Identifier: Apache-2.0
"""Names of the wider interface that this version refuses, in words rather than by their absence."""

from horo import _native


def unavailable(name):
    """A function of the wider interface that this version does not have."""

    def refuse(*_args, **_kwargs):
        raise NotImplementedError(f"{name} is not part of Horo {_native.version}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"{name} is not part of this version: NotImplementedError."
    return refuse
