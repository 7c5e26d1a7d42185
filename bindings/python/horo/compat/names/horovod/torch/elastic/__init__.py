# SPDX-License-Identifier: Apache-2.0
"""horo.torch.elastic under Horovod's name."""

from horo.torch.elastic import ElasticSampler, TorchState, run
from horovod.torch.elastic import sampler, state
