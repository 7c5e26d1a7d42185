# SPDX-License-Identifier: Apache-2.0
"""horo.torch under Horovod's name."""

from horo.torch import *
from horo.torch import __version__
