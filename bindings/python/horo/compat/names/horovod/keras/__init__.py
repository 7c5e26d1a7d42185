# SPDX-License-Identifier: Apache-2.0
"""horo.keras under Horovod's name."""

from horo.keras import *
from horovod import __version__
from horovod.keras import callbacks, elastic
