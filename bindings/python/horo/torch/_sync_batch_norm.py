# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation over the batches of all ranks together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from horo import _job
from horo._arguments import SUM
from horo._handles import synchronize
from horo._sets import WORLD
from horo.torch._face import TORCH

if TYPE_CHECKING:
    from torch import Tensor


def _channels(values, like):
    """One value per channel, in a shape that broadcasts with `like`: [batch, channel, ...]."""
    return values.view((1, -1) + (1,) * (like.dim() - 2))


class _Moments:
    """Mean and variance per channel of this rank's batch, and over all ranks."""

    def __init__(self, tensor):
        others = [0, *range(2, tensor.dim())]
        channels = tensor.shape[1]
        count = tensor.numel() // max(channels, 1)
        part = tensor.new_zeros((1, 2 * channels + 1), dtype=torch.float64)
        part[0, -1] = count
        if count:  # a rank may have an empty batch
            variance, mean = torch.var_mean(tensor.double(), others, unbiased=False)
            part[0, :channels], part[0, channels:-1] = mean, variance
        name = f"sync_batch_norm.forward.{channels}"
        parts = synchronize(TORCH.start_allgather(part, WORLD, name))
        means, variances, counts = parts[:, :channels], parts[:, channels:-1], parts[:, -1:]
        self.count = counts.sum().item()
        self.mean = (means * counts).sum(0) / self.count
        spread = variances + (means - self.mean) ** 2
        self.variance = (spread * counts).sum(0) / self.count


class _Normalise(torch.autograd.Function):
    """Computes in float32 or wider. The output has the input's dtype and memory format."""

    @staticmethod
    def forward(ctx, tensor, weight, bias, moments, eps):
        wide = torch.promote_types(tensor.dtype, torch.float32)
        inverse = torch.rsqrt(moments.variance + eps).to(wide)
        mean = moments.mean.to(wide)
        ctx.save_for_backward(tensor, weight, mean, inverse)
        ctx.count = moments.count
        result = (tensor - _channels(mean, tensor)) * _channels(inverse, tensor)
        if weight is not None:
            result = result * _channels(weight, tensor) + _channels(bias, tensor)
        return result.to(tensor.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        tensor, weight, mean, inverse = ctx.saved_tensors
        others = [0, *range(2, tensor.dim())]
        gradient = gradient.to(mean.dtype)
        apart = tensor - _channels(mean, tensor)
        own = torch.cat([gradient.sum(others), (gradient * apart).sum(others)])
        channels, total = mean.numel(), torch.empty_like(own)
        name = f"sync_batch_norm.backward.{channels}"
        synchronize(TORCH.start_allreduce(own, total, WORLD, name, SUM, 1.0, 1.0))
        spread = inverse**2 * total[channels:] / ctx.count
        result = gradient - _channels(total[:channels] / ctx.count, tensor)
        result = result - apart * _channels(spread, tensor)
        scale = inverse if weight is None else inverse * weight
        result = result * _channels(scale, tensor)
        needs = ctx.needs_input_grad
        return (
            result.to(tensor.dtype) if needs[0] else None,
            # Each rank's own: the optimizer reduces these two like any gradient.
            (own[channels:] * inverse).to(weight.dtype) if needs[1] else None,
            own[:channels].to(weight.dtype) if needs[2] else None,
            None,
            None,
        )


class SyncBatchNorm(_BatchNorm):
    """Like torch.nn.BatchNorm1d to 3d, with mean and variance over all ranks' batches together. On
    one rank, and in evaluation, it is the plain layer. All ranks run their layers in the same
    order; a rank may have an empty batch. Dimension 1 holds the channels. There are no second
    derivatives. Tensors may be on any device; the moments travel through the host's memory."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"input has {input.dim()} dimensions; at least 2 are needed")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if not self.training or _job.size() == 1:
            return self._plain(input)
        moments = _Moments(input.detach().cpu())
        for name in ("mean", "variance"):
            setattr(moments, name, getattr(moments, name).to(input.device))
        if self.track_running_stats:
            self._remember(moments)
        return _Normalise.apply(input, self.weight, self.bias, moments, self.eps)

    def _plain(self, input):
        use_batch = self.training or self.running_mean is None
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
        return functional.batch_norm(
            input,
            self.running_mean if not self.training or self.track_running_stats else None,
            self.running_var if not self.training or self.track_running_stats else None,
            self.weight,
            self.bias,
            use_batch,
            self._share(),
            self.eps,
        )

    def _share(self):
        """The weight of the newest batch. Without momentum all batches have the same weight."""
        if self.momentum is not None:
            return self.momentum
        return 1.0 / max(float(self.num_batches_tracked), 1.0) if self.track_running_stats else 0.0

    def _remember(self, moments):
        self.num_batches_tracked.add_(1)
        share = self._share()
        unbiased = moments.variance * (moments.count / max(moments.count - 1, 1))
        with torch.no_grad():
            for running, now in ((self.running_mean, moments.mean), (self.running_var, unbiased)):
                running.mul_(1 - share).add_(now.to(running.dtype), alpha=share)
