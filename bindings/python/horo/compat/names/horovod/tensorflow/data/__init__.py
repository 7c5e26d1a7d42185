# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow.data under Horovod's name."""

from horo.tensorflow.data import *
