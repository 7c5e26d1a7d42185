# SPDX-License-Identifier: Apache-2.0
"""horo.keras.callbacks under Horovod's name."""

from horo.keras.callbacks import *
