# SPDX-License-Identifier: Apache-2.0
"""Horo under Horovod's name, for programs written for it: see horo.compat."""

import importlib.abc as _abc
import os as _os
import sys as _sys

try:
    import horo as _horo
except ImportError:  # only this folder was put on the path
    _sys.path.append(_os.path.abspath(_os.path.join(__file__, *[_os.pardir] * 5)))
    import horo as _horo

from horo import run

# What programs compare with is the version of the interface; horo.__version__ is Horo's own.
__version__ = "0.28.1"


class _Missing(_abc.MetaPathFinder):
    """Says of a module of Horovod's that Horo has none."""

    def find_spec(self, name, _path=None, _target=None):
        if not name.startswith("horovod."):
            return None
        raise ModuleNotFoundError(
            f"{name} is not part of Horo {_horo.__version__}, which is imported as horovod here; "
            "horovod.torch is",
            name=name,
        )


_sys.meta_path.append(_Missing())
