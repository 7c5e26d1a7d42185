# SPDX-License-Identifier: Apache-2.0
"""Tensors and objects of more than 2 GiB: counts and sizes beyond 32 bits, from Python."""

import torch

import horo.torch as horo

OVER = (1 << 31) + 4097


def check_a_tensor():
    mine = torch.zeros(OVER, dtype=torch.uint8)
    mine[-1] = mine[0] = horo.rank() + 1
    mine[1 << 31] = 7
    horo.allreduce_(mine, op=horo.Sum, name="huge")
    total = sum(range(1, horo.size() + 1))
    assert (mine[0], mine[-1], mine[1 << 31]) == (total, total, 7 * horo.size())
    assert not mine[1 : 1 << 31].count_nonzero()
    mine[-1] = horo.rank()
    horo.broadcast_(mine, horo.size() - 1, name="huge")
    assert mine[-1] == horo.size() - 1


def check_an_object():
    data = None
    if horo.rank() == 0:
        data = bytearray(OVER)
        data[-1] = data[1 << 31] = 5
    data = horo.broadcast_object(data)
    assert len(data) == OVER and data[-1] == data[1 << 31] == 5 and data[0] == data[-2] == 0
