# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow.keras.callbacks under Horovod's name."""

from horo.tensorflow.keras.callbacks import *
