# SPDX-License-Identifier: Apache-2.0
"""Runs programs that were written for Horovod, unchanged:

    horo run --horovod -np 4 python3 train.py
    python3 -m horo.compat train.py            # under any launcher, or as one rank

In these programs `import horovod.torch as hvd` imports horo.torch, even if Horovod is installed.
"""

from __future__ import annotations

import os
import sys

NAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "names")


def install():
    """Makes `import horovod` import Horo, in this process and in the processes that it starts."""
    if NAMES not in sys.path:
        sys.path.insert(0, NAMES)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if NAMES not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([NAMES, *paths])
