# SPDX-License-Identifier: Apache-2.0
"""horo.torch.elastic under Horovod's name."""

from horo._elastic.loop import renew as reset
from horo.elastic import run_fn
from horo.torch import init, shutdown
from horo.torch.elastic import ElasticSampler, TorchState, run
from horovod.torch.elastic import sampler, state
