# SPDX-License-Identifier: Apache-2.0
"""The names of horo.tensorflow that Horovod has in this module."""

from horo.tensorflow import *
