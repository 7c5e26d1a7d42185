# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow under Horovod's name."""

from horo.tensorflow import *
from horovod import __version__
from horovod.common.util import check_extension
from horovod.tensorflow import compression, elastic, functions, mpi_ops


def __getattr__(name):
    if name == "SyncBatchNormalization":  # its import takes long
        import horo.tensorflow

        return horo.tensorflow.SyncBatchNormalization
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
