# SPDX-License-Identifier: Apache-2.0
"""The names of horo.torch that Horovod has in this module."""

from horo.torch import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
