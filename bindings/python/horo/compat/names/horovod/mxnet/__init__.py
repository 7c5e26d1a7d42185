# SPDX-License-Identifier: Apache-2.0
"""horo.mxnet under Horovod's name."""

from horo.mxnet import *
from horovod import __version__
from horovod.common.util import check_extension
from horovod.mxnet import compression, functions, mpi_ops
