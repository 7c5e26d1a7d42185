# SPDX-License-Identifier: Apache-2.0
"""horo.torch: batch normalisation over all ranks, and steps combined by Adasum."""

import copy

import torch

from expect import fails
import horo.torch as horo

CHANNELS = 5


def batches(shape, dtype=torch.float64):
    """The batches of all ranks, with different lengths; the last one is empty."""
    generator = torch.Generator().manual_seed(3)
    last = horo.size() - 1
    return [
        torch.randn(
            (0 if rank == last and last else rank + 2, CHANNELS, *shape),
            generator=generator,
            dtype=dtype,
        )
        for rank in range(horo.size())
    ]


def layers(dtype=torch.float64, **options):
    """Horo's layer, and torch's own with the same weights for the whole batch."""
    torch.manual_seed(5)
    ours = horo.SyncBatchNorm(CHANNELS, **options).to(dtype)
    if ours.affine:
        torch.nn.init.uniform_(ours.weight)
        torch.nn.init.uniform_(ours.bias)
    return ours, copy.deepcopy(ours)


def whole_batch(layer, tensor):
    """torch's result for all batches together."""
    return torch.nn.functional.batch_norm(
        tensor,
        layer.running_mean,
        layer.running_var,
        layer.weight,
        layer.bias,
        True,
        layer.momentum,
        layer.eps,
    )


def check_norm_is_that_of_the_whole_batch():
    for shape in ((), (3,), (2, 4), (2, 1, 3)):
        for options in ({}, {"affine": False}, {"momentum": 0.3, "eps": 1e-3}):
            ours, plain = layers(**options)
            parts = batches(shape)
            mine = parts[horo.rank()].clone().requires_grad_()
            total = torch.cat(parts).requires_grad_()
            found, wanted = ours(mine), whole_batch(plain, total)
            before = sum(len(part) for part in parts[: horo.rank()])
            rows = slice(before, before + len(mine))
            assert torch.allclose(found, wanted[rows]), shape
            torch.manual_seed(11)
            pull = torch.randn_like(wanted)
            (found * pull[rows]).sum().backward()
            (wanted * pull).sum().backward()
            assert torch.allclose(mine.grad, total.grad[rows]), shape
            assert torch.allclose(ours.running_mean, plain.running_mean)
            assert torch.allclose(ours.running_var, plain.running_var)
            assert ours.num_batches_tracked == 1
            if ours.affine:
                for name in ("weight", "bias"):
                    grad = horo.allreduce(getattr(ours, name).grad, op=horo.Sum, name=name)
                    assert torch.allclose(grad, getattr(plain, name).grad), name


def check_norm_in_evaluation_is_the_plain_one():
    ours, plain = layers()
    ours.eval()
    if horo.rank() == 0:  # no collective, so one rank may do it alone
        mine = torch.randn(3, CHANNELS, 2, dtype=torch.float64)
        wanted = torch.nn.functional.batch_norm(
            mine, plain.running_mean, plain.running_var, plain.weight, plain.bias
        )
        assert torch.allclose(ours(mine), wanted)


def check_norm_without_memory():
    ours, _ = layers(track_running_stats=False)
    assert ours.running_mean is None
    found = ours(torch.cat([batches((2,))[0]]))
    assert abs(float((found - ours.bias.view(1, -1, 1)).mean())) < 1e-6


def check_norm_of_float32():
    ours, plain = layers(torch.float32)
    parts = batches((3,), torch.float32)
    found = ours(parts[horo.rank()])
    assert found.dtype == torch.float32
    before = sum(len(part) for part in parts[: horo.rank()])
    wanted = whole_batch(plain, torch.cat(parts))[before : before + len(parts[horo.rank()])]
    assert torch.allclose(found, wanted, atol=1e-5)


def check_norm_keeps_dtype_and_memory_format():
    """16-bit inputs with float32 parameters are computed in 32 bits."""
    if horo.size() == 1:
        return  # torch's own layer
    for dtype in (torch.bfloat16, torch.float16):
        ours, plain = layers(torch.float32)
        parts = [(part + 100).to(dtype) for part in batches((2, 4), torch.float32)]
        mine = parts[horo.rank()].to(memory_format=torch.channels_last).requires_grad_()
        total = torch.cat(parts).float().requires_grad_()
        found, wanted = ours(mine), whole_batch(plain, total)
        assert found.dtype == dtype and found.is_contiguous(memory_format=torch.channels_last)
        before = sum(len(part) for part in parts[: horo.rank()])
        rows = slice(before, before + len(mine))
        assert torch.allclose(found.float(), wanted[rows], atol=1e-2, rtol=1e-2), dtype
        found.float().pow(3).sum().backward()
        wanted.pow(3).sum().backward()
        assert mine.grad.dtype == dtype and ours.weight.grad.dtype == torch.float32
        assert torch.allclose(mine.grad.float(), total.grad[rows], atol=0.2, rtol=0.05), dtype


def check_norm_refuses_vectors():
    ours, _ = layers()
    fails(ValueError, lambda: ours(torch.ones(CHANNELS)), "dimensions")


def check_norm_learns_the_same_everywhere():
    model = torch.nn.Sequential(torch.nn.Linear(4, CHANNELS), horo.SyncBatchNorm(CHANNELS))
    horo.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    torch.manual_seed(horo.rank())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).pow(3).sum().backward()
        optimizer.step()
    for name, value in model.state_dict().items():
        everywhere = horo.allgather(value.reshape(1, -1).double(), name=f"same.{name}")
        assert torch.equal(everywhere, everywhere[:1].expand_as(everywhere)), name


# -- Adasum ------------------------------------------------------------------------------------


def combined(parts):
    """Adasum of the ranks' vectors by its definition: pairs of neighbours, then pairs of these."""
    parts = [part.double() for part in parts]
    while len(parts) > 1:
        pairs = list(zip(parts[::2], parts[1::2]))
        rest = parts[len(pairs) * 2 :]
        parts = [_pair(a, b) for a, b in pairs] + rest
    return parts[0]


def _pair(a, b):
    dot, first, second = (a * b).sum(), (a * a).sum(), (b * b).sum()
    keep_a = 1.0 if first == 0 else 1 - dot / (2 * first)
    keep_b = 1.0 if second == 0 else 1 - dot / (2 * second)
    return keep_a * a + keep_b * b


def stepped(rank, kind, steps, others=None):
    """The model of a rank that has trained alone, or with combined steps."""
    torch.manual_seed(2)
    weight = torch.nn.Parameter(torch.randn(3, 4, dtype=torch.float64))
    optimizer = kind([weight])
    if others:
        optimizer = horo.DistributedOptimizer(optimizer, [("weight", weight)], op=horo.Adasum)
    for step in range(steps):
        optimizer.zero_grad()
        generator = torch.Generator().manual_seed(100 * step + rank)
        x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
        (x @ weight).pow(2).sum().backward()
        optimizer.step()
    return weight, optimizer


def check_adasum_combines_steps():
    for kind in (
        lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
        lambda p: torch.optim.Adam(p, lr=0.01),
    ):
        start, _ = stepped(0, kind, 0)
        alone = [stepped(rank, kind, 1)[0] for rank in range(horo.size())]
        change = combined([(one - start).detach() for one in alone])
        found, optimizer = stepped(horo.rank(), kind, 1, others=True)
        assert torch.allclose(found, start + change), (found - start - change).abs().max()
        assert isinstance(optimizer, (torch.optim.SGD, torch.optim.Adam))


def check_adasum_keeps_ranks_equal():
    found, _ = stepped(horo.rank(), lambda p: torch.optim.Adam(p, lr=0.01), 4, others=True)
    everywhere = horo.allgather(found.detach().reshape(1, -1), name="adasum.same")
    assert torch.equal(everywhere, everywhere[:1].expand_as(everywhere))


def check_adasum_rules():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    optimizer = horo.DistributedOptimizer(
        optimizer, [("w", weight)], op=horo.Adasum, compression=horo.Compression.fp16
    )
    optimizer.synchronize()

    def skip():
        with optimizer.skip_synchronize():
            pass

    fails(AssertionError, skip, "Adasum")
    for _ in range(2):  # gradients add up
        (weight * 2).sum().backward()
    optimizer.step()
    assert torch.allclose(weight, torch.full((2,), 0.6), atol=1e-3)
    loss = optimizer.step(lambda: (weight * 0).sum())
    assert float(loss) == 0
    fails(ValueError, lambda: optimizer.set_backward_passes_per_step(0), "0")
