# SPDX-License-Identifier: Apache-2.0
"""wire_dtype and error_feedback where all ranks are on one host: nothing is rounded, and ranks still have to agree.
tests/hosts/wire.sh runs them between hosts."""

import torch

import horo.torch as horo
from expect import fails
from values import equal

KEPT = 1 + 2.0**-12  # no 16-bit type has it


def values():
    return torch.full((3000,), KEPT)


def check_every_function_takes_them_and_rounds_nothing():
    for how in (None, "none", "bfloat16", "float16", torch.bfloat16, torch.float16):
        for feedback in (None, True, False):
            options = {"op": horo.Average, "wire_dtype": how, "error_feedback": feedback}
            equal(horo.allreduce(values(), **options), values())
            equal(horo.allreduce_(values(), **options), values())
            equal(horo.synchronize(horo.allreduce_async(values(), **options)), values())
            equal(horo.synchronize(horo.allreduce_async_(values(), **options)), values())
            equal(horo.grouped_allreduce([values()], **options)[0], values())
            equal(horo.grouped_allreduce_([values()], **options)[0], values())
            equal(horo.synchronize(horo.grouped_allreduce_async([values()], **options))[0], values())
            equal(horo.synchronize(horo.grouped_allreduce_async_([values()], **options))[0], values())


def check_gradients_flow():
    one, two = values().requires_grad_(), values().requires_grad_()
    horo.allreduce(one, wire_dtype="bfloat16", name="one").sum().backward()
    horo.grouped_allreduce([two], wire_dtype="bfloat16", name="two")[0].sum().backward()
    equal(one.grad, torch.ones(3000))
    equal(two.grad, torch.ones(3000))


def check_what_cannot_be_rounded_is_refused():
    fails(ValueError, lambda: horo.allreduce(values(), wire_dtype="int8"), "int8", "bfloat16")
    fails(ValueError, lambda: horo.allreduce(values(), error_feedback=2), "error_feedback is 2")
    fails(
        horo.HoroError,
        lambda: horo.allreduce(values(), op=horo.Max, name="most", wire_dtype="float16"),
        "by max with wire_dtype float16",
    )
    fails(
        horo.HoroError,
        lambda: horo.allreduce(values().double(), name="double", wire_dtype="float16"),
        "allreduce of float64",
    )
    equal(horo.allreduce(values(), name="most"), values())


def check_ranks_that_differ_learn_both_values():
    if horo.size() == 1:
        return
    mine = "float16" if horo.rank() else "bfloat16"
    words = ("wire dtype", "bfloat16 on rank 0", "float16 on rank 1")
    fails(horo.MismatchError, lambda: horo.allreduce(values(), name="differs", wire_dtype=mine), *words)


def check_an_optimizer_rounds_its_float32_gradients_only():
    expected = None
    for options in (
        {},
        {"wire_dtype": "bfloat16", "error_feedback": True},
        {"wire_dtype": "float16", "groups": 1},
    ):
        torch.manual_seed(1)
        model = torch.nn.ModuleList([torch.nn.Linear(50, 30), torch.nn.Linear(4, 4).double()])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters(), **options)
        for _ in range(2):
            optimizer.zero_grad()
            loss = model[0](torch.full((2, 50), 0.3 * (1 + horo.rank()))).pow(2).sum()
            (loss + model[1](torch.ones(1, 4, dtype=torch.float64)).sum()).backward()
            optimizer.step()
        found = [parameter.detach().clone() for parameter in model.parameters()]
        for one, wanted in zip(found, expected or found):
            equal(one, wanted)
        expected = found
    made = torch.optim.SGD(model.parameters(), lr=0.1)
    fails(ValueError, lambda: horo.DistributedOptimizer(made, wire_dtype="int8"), "int8")
