# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow.keras under Horovod's name."""

from horo.tensorflow.keras import *
from horovod import __version__
from horovod.tensorflow.keras import callbacks, elastic
