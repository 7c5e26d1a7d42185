# SPDX-License-Identifier: Apache-2.0
"""Python runs this file at its start when `horo run --torch-backend horo` has put its folder into
PYTHONPATH. It hides another sitecustomize, if there is one, and therefore runs that one first."""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_the_hidden_one():
    paths = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _find_horo():
    """The package that this file belongs to, unless the program's path has one."""
    if importlib.util.find_spec("horo") is None:
        sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(_HERE))))


try:
    _run_the_hidden_one()
finally:
    _find_horo()
    from horo import _torch_backend

    _torch_backend.replace_when_imported()
