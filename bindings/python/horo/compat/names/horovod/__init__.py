# SPDX-License-Identifier: Apache-2.0
"""Horo under Horovod's name, for programs that were written for Horovod: see horo.compat."""

import importlib.abc as _abc
import os as _os
import sys as _sys

try:
    import horo as _horo
except ImportError:  # only this folder is in sys.path
    _sys.path.append(_os.path.abspath(_os.path.join(__file__, *[_os.pardir] * 5)))
    import horo as _horo

from horo import run
from horovod._refused import instead_of as _instead_of

# Programs compare this with versions of Horovod's interface. horo.__version__ is Horo's own.
__version__ = "0.28.1"


class _Missing(_abc.MetaPathFinder):
    """Explains that Horo does not have a module of Horovod."""

    def find_spec(self, name, _path=None, _target=None):
        if not name.startswith("horovod."):
            return None
        instead = _instead_of(name) or "horovod.torch is"
        raise ModuleNotFoundError(
            f"{name} is not part of Horo {_horo.__version__}, which is imported as horovod here; {instead}",
            name=name,
        )


_sys.meta_path.append(_Missing())
