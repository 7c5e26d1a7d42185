# SPDX-License-Identifier: Apache-2.0
"""The names of horo.torch.elastic that Horovod has in this module."""

from horo.torch.elastic import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    TorchState,
    get_handler_registry,
    set_handler_registry,
)
