# SPDX-License-Identifier: Apache-2.0
"""What Horovod has under this name, of horo.torch."""

from horo.torch import DistributedOptimizer
