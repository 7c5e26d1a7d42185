# SPDX-License-Identifier: Apache-2.0
"""The names of horo.tensorflow that Horovod has in this module."""

from horo.tensorflow import (
    allgather_object,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)
