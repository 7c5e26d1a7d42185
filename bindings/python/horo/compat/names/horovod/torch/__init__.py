# SPDX-License-Identifier: Apache-2.0
"""horo.torch under Horovod's name."""

from horo.torch import *
from horovod import __version__
from horovod.common.util import check_extension
from horovod.torch import compression, elastic, functions, mpi_ops, optimizer, sync_batch_norm
