# SPDX-License-Identifier: Apache-2.0
"""Horo: collectives for distributed training.

    import horo.torch as horo        # or horo.numpy

A process is one rank of the job that `horo run` started, or a job of its own. horo.run(function,
num_proc=4) starts a job from Python.
"""

from horo._runner.run import run
from horo.errors import (
    DuplicateNameError,
    ForkedError,
    HoroError,
    LibraryError,
    MismatchError,
    NotInitializedError,
    PeerLostError,
    RankError,
    RemovedError,
    ResourceError,
    ShutDownError,
    StartError,
    TimeOutError,
    UnsupportedError,
)

__version__ = "0.1.0"

__all__ = [
    "DuplicateNameError",
    "ForkedError",
    "HoroError",
    "LibraryError",
    "MismatchError",
    "NotInitializedError",
    "PeerLostError",
    "RankError",
    "RemovedError",
    "ResourceError",
    "run",
    "ShutDownError",
    "StartError",
    "TimeOutError",
    "UnsupportedError",
]
