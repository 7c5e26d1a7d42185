# SPDX-License-Identifier: Apache-2.0
"""Inputs that the ranks of a torch job give to collectives, and the expected results."""

import torch

import horo.torch as horo

REDUCIBLE = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
)
MOVABLE = REDUCIBLE + (torch.bool,)
SHAPES = ((), (1,), (7,), (3, 5), (0,), (2, 3, 4), (129, 65))
OPS = (horo.Sum, horo.Average, horo.Min, horo.Max, horo.Product)


def part(rank, dtype, shape, seed=0):
    """A rank's input: small whole numbers, exact in every dtype and different on every rank."""
    count = torch.Size(shape).numel()
    values = (torch.arange(count) * 7 + rank * 3 + seed) % 3 + 1
    return values.reshape(shape).to(dtype)


def reduced(op, dtype, shape, seed=0):
    """The expected reduction of all ranks' inputs."""
    whole = torch.float64 if dtype.is_floating_point else torch.int64
    parts = torch.stack([part(rank, dtype, shape, seed).to(whole) for rank in range(horo.size())])
    if op == horo.Sum:
        result = parts.sum(0)
    elif op == horo.Average:
        mode = None if dtype.is_floating_point else "trunc"
        result = torch.div(parts.sum(0), horo.size(), rounding_mode=mode)
    elif op == horo.Min:
        result = parts.min(0)[0]
    elif op == horo.Max:
        result = parts.max(0)[0]
    else:
        result = parts.prod(0)
    return result.to(dtype)


def equal(found, wanted):
    assert found.dtype == wanted.dtype, (found.dtype, wanted.dtype)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    assert torch.equal(found, wanted), (found, wanted)


def rows_of(rank, count):
    """First row and number of rows of a rank when `count` rows are divided."""
    shares = [count // horo.size() + (r < count % horo.size()) for r in range(horo.size())]
    return sum(shares[:rank]), shares[rank]
