# SPDX-License-Identifier: Apache-2.0
"""Refuses to import without MXNet, or with one that is too old."""

from __future__ import annotations

import importlib
from typing import Any

OLDEST = (1, 9)
NEEDS = "horo.mxnet needs MXNet 1.9: pip install 'mxnet==1.9.1' 'numpy<1.24'"

try:
    mxnet: Any = importlib.import_module("mxnet")
except ModuleNotFoundError as error:
    if error.name != "mxnet":
        raise  # MXNet is installed, but one of its own imports failed
    raise ImportError(NEEDS) from None
except AttributeError as error:
    if "numpy" not in str(error):
        raise
    # MXNet uses names such as numpy.bool, which numpy 1.24 has removed.
    raise ImportError(f"{NEEDS}; MXNet cannot be imported with this numpy: {error}") from error

if tuple(int(part) for part in mxnet.__version__.split(".")[:2] if part.isdigit()) < OLDEST:
    raise ImportError(f"{NEEDS}; this is {mxnet.__version__}")
