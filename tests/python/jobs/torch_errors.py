# SPDX-License-Identifier: Apache-2.0
"""horo.torch raises an error when it is used wrongly, and the job continues."""

import torch

import horo.numpy as on_numpy
import horo.torch as horo


def fails(kind, function, *words):
    """The exception of `kind` that `function` raises. Its message must hold the words."""
    try:
        function()
    except kind as error:
        text = str(error)
        assert all(str(word) in text for word in words), (words, text)
        return error
    raise AssertionError(f"no {kind.__name__}")


def goes_on():
    found = horo.allreduce(torch.ones(3), op=horo.Sum, name="goes_on")
    assert torch.equal(found, torch.full((3,), float(horo.size())))


def check_dtype():
    quantised = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    fails(ValueError, lambda: horo.allgather(quantised), "quint8")
    fails(ValueError, lambda: horo.allreduce(torch.ones(2, dtype=torch.bool)))
    goes_on()


def check_not_a_dense_tensor():
    sparse = torch.ones(3).to_sparse()
    fails(ValueError, lambda: horo.allreduce_(sparse), "sparse")
    fails(ValueError, lambda: horo.allgather(torch.tensor(1.0)), "dimension")
    fails(ValueError, lambda: horo.broadcast_([1, 2], 0), "list")
    for function in (horo.allreduce, horo.allgather, horo.alltoall, horo.reducescatter):
        fails(ValueError, lambda function=function: function([1, 2]), "list")
    fails(ValueError, lambda: horo.grouped_allreduce([torch.ones(2), 3.0]), "float")
    fails(ValueError, lambda: horo.allreduce(torch.ones(2, device="meta")), "meta")
    dense = torch.ones(2)
    fails(ValueError, lambda: horo.sparse_allreduce_async(dense, "dense", horo.Sum), "to_sparse")
    fails(ValueError, lambda: horo.sparse_allreduce_async(2, "two", horo.Sum), "int")
    goes_on()


def check_arguments():
    one = torch.ones(1)
    fails(ValueError, lambda: horo.allreduce(one, average=True, op=horo.Sum), "average")
    fails(ValueError, lambda: horo.allreduce(one, op=77), "77")
    whole = torch.ones(1, dtype=torch.int32)
    fails(ValueError, lambda: horo.allreduce(whole, op=horo.Adasum), "adasum", "floating")
    fails(ValueError, lambda: horo.broadcast(one, horo.size()), horo.size())
    fails(ValueError, lambda: horo.broadcast(one, -1), "-1")
    fails(ValueError, lambda: horo.broadcast(one, 2**32), 2**32)  # it must not be truncated
    fails(ValueError, lambda: horo.broadcast(one, 0.5), "root_rank is 0.5")
    fails(ValueError, lambda: horo.broadcast_object(one, 2**32), 2**32)
    fails(ValueError, lambda: horo.add_process_set([0, 2**32]), 2**32)
    fails(ValueError, lambda: horo.grouped_allreduce([]), "at least one")
    fails(ValueError, lambda: horo.poll(123456789), "123456789")
    assert horo.synchronize(123456789) is None
    fails(ValueError, lambda: horo.allreduce(one, name="a\0b"), "null")
    fails(ValueError, lambda: horo.start_timeline("a\0b"), "null")
    for factor in ("prescale_factor", "postscale_factor"):
        fails(ValueError, lambda: horo.allreduce(one, **{factor: float("nan")}), factor[:6], "nan")
    fails(ValueError, lambda: horo.broadcast_parameters(7, 0), "int")
    fails(ValueError, lambda: horo.broadcast_optimizer_state(7, 0), "int")
    fails(ValueError, lambda: horo.broadcast_parameters({"a": 7}, 0), "'a'")
    model = torch.nn.Linear(2, 1)
    fails(ValueError, lambda: horo.DistributedOptimizer(model, model.named_parameters()), "Linear")
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for wrong in ({"compression": "fp16"}, {"backward_passes_per_step": 1.5}):
        word = str(*wrong.values())
        fails(ValueError, lambda: horo.DistributedOptimizer(sgd, **wrong), *wrong, word)
    lbfgs = torch.optim.LBFGS([torch.nn.Parameter(one)])
    fails(ValueError, lambda: horo.broadcast_optimizer_state(lbfgs, 0), "LBFGS")
    goes_on()


def check_sparse_state_on_the_root():
    weight = torch.nn.Parameter(torch.ones(3, 2))
    sgd = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    if horo.rank() == 0:
        weight.grad = torch.ones(3, 2).to_sparse(1)
        sgd.step()
    fails(ValueError, lambda: horo.broadcast_optimizer_state(sgd, 0), "on rank 0", "sparse_coo")
    goes_on()
    sparse = torch.ones(3, 2).to_sparse(1)
    everywhere = {"a": torch.ones(2), "b": sparse}
    fails(ValueError, lambda: horo.broadcast_parameters(everywhere, 0), "sparse_coo")
    goes_on()
    mine = {"a": torch.ones(2), "b": sparse if horo.rank() == 0 else torch.ones(3, 2)}
    if horo.size() > 1:
        said = "float32 [3, 2] sparse_coo on rank 0"
        fails(horo.MismatchError, lambda: horo.broadcast_parameters(mine, 0), said)
    goes_on()


def check_no_gradient_of_max():
    x = torch.ones(2, requires_grad=True)
    fails(NotImplementedError, lambda: horo.allreduce(x, op=horo.Max), "Max")
    assert horo.allreduce(x.detach(), op=horo.Max).sum() == 2


def check_splits():
    n = horo.size()
    rows = torch.ones(2 * n)
    fails(ValueError, lambda: horo.alltoall(rows, [1] * (n + 1)), f"{n + 1} splits")
    fails(ValueError, lambda: horo.alltoall(rows, [3] * n), "ask for more")
    fails(ValueError, lambda: horo.alltoall(rows, [-1] + [1] * (n - 1)), "negative")
    fails(ValueError, lambda: horo.alltoall(rows, [0.5] * n), "whole numbers")
    fails(ValueError, lambda: horo.alltoall(rows, [2**64 + 1] * n), 2**64 + 1)
    fails(ValueError, lambda: horo.alltoall(rows, 2), "one per rank")
    fails(ValueError, lambda: horo.alltoall(rows, torch.ones(n)), "whole numbers")
    fails(ValueError, lambda: horo.alltoall(rows, torch.ones(n, 1)), "whole numbers")
    fails(ValueError, lambda: horo.alltoall(torch.tensor(1.0)), "dimension")
    if n > 1:
        fails(ValueError, lambda: horo.alltoall(torch.ones(2 * n + 1)), "give splits")
    found, _ = horo.alltoall(rows, [2] * n, name="fine")
    assert torch.equal(found, rows)
    goes_on()


def check_reducescatter_of_unsupported_tensors():
    fails(ValueError, lambda: horo.reducescatter(torch.tensor(1.0)), "dimension")
    fails(ValueError, lambda: horo.reducescatter(torch.ones(3), op=horo.Adasum), "adasum")
    fails(ValueError, lambda: horo.reducescatter(torch.ones(3, dtype=torch.bool)), "bool")
    fails(ValueError, lambda: horo.grouped_reducescatter([]), "at least one")
    fails(ValueError, lambda: horo.grouped_allgather([]), "at least one")
    x = torch.ones(3, requires_grad=True)
    fails(NotImplementedError, lambda: horo.reducescatter(x, op=horo.Max), "Max")
    goes_on()


def check_mismatched_alltoall():
    tensor = torch.ones(4 * horo.size(), 2 if horo.rank() else 3)
    fails(horo.MismatchError, lambda: horo.alltoall(tensor, name="columns of alltoall"), "shape")
    mine = torch.ones(4 if horo.rank() else 5)
    fails(horo.MismatchError, lambda: horo.reducescatter(mine, name="rows"), "shape", 4, 5)
    goes_on()


def check_mismatched_shapes():
    tensor = torch.ones(4 if horo.rank() else 5)
    error = fails(horo.MismatchError, lambda: horo.allreduce(tensor, name="shape"), "shape", 4, 5)
    assert isinstance(error, horo.HorovodInternalError) and error.status == "mismatch"
    assert (error.subject, error.tensor) == ("shape", "allreduce.shape")
    assert error.ranks == () and error.host == ""
    goes_on()
    again = horo.allreduce(torch.ones(6), op=horo.Sum, name="shape")
    assert torch.equal(again, torch.full((6,), float(horo.size())))


def check_mismatched_dtypes():
    tensor = torch.ones(4, dtype=torch.float64 if horo.rank() else torch.float32)
    start = lambda: horo.allreduce_(tensor, name="dtype")
    assert fails(horo.MismatchError, start, "float32", "float64").subject == "dtype"
    goes_on()


def check_mismatched_ops():
    op = horo.Max if horo.rank() == horo.size() - 1 else horo.Sum
    error = fails(horo.MismatchError, lambda: horo.allreduce(torch.ones(4), name="op", op=op))
    assert error.subject == "reduce_op"
    goes_on()


def check_mismatched_roots():
    start = lambda: horo.broadcast(torch.ones(4), horo.rank(), name="root")
    assert fails(horo.MismatchError, start).subject == "root_rank"
    goes_on()


def check_mismatched_columns_of_allgather():
    tensor = torch.ones(2, 3 if horo.rank() else 4)
    fails(horo.MismatchError, lambda: horo.allgather(tensor, name="columns"))
    goes_on()


def check_mismatch_in_a_group():
    tensors = [torch.ones(2), torch.ones(3 if horo.rank() else 4), torch.ones(5)]
    fails(horo.MismatchError, lambda: horo.grouped_allreduce(tensors, name="group"))
    goes_on()


def check_groups_with_other_members():
    """Members that only some ranks have stay in flight, and the call does not wait for them."""
    count = 2 if horo.rank() == 0 else 3
    tensors = [torch.ones(2) for _ in range(count)]
    error = fails(horo.MismatchError, lambda: horo.grouped_allreduce(tensors, name="sizes"))
    assert (error.subject, error.tensor) == ("group", "allreduce.sizes.0"), vars(error)
    assert "about the group" in str(error)
    goes_on()


def check_mismatch_leaves_the_others_alone():
    good, bad = [], 0
    for i in range(40):
        good.append(horo.allreduce_async(torch.ones(8), op=horo.Sum, name=f"good{i}"))
        if i == 20:
            bad = horo.allreduce_async(torch.ones(horo.rank() + 1), name="bad")
    fails(horo.MismatchError, lambda: horo.synchronize(bad))
    for handle in good:
        assert torch.equal(horo.synchronize(handle), torch.full((8,), float(horo.size())))


def check_duplicate_name():
    first = horo.allreduce_async(torch.ones(4), op=horo.Sum, name="twice")
    error = fails(
        horo.DuplicateNameError,
        lambda: [horo.allreduce_async(torch.ones(4), op=horo.Sum, name="twice") for _ in range(2)],
        "twice",
    )
    assert isinstance(error, ValueError)
    assert error.status == "duplicate" and error.tensor == "allreduce.twice"
    assert torch.equal(horo.synchronize(first), torch.full((4,), float(horo.size())))
    goes_on()


def check_object_that_cannot_be_pickled():
    class Stubborn:
        def __reduce__(self):
            raise TypeError("not this one")

    if horo.rank() == 0:
        fails(TypeError, lambda: horo.broadcast_object(Stubborn()), "not this one")
    else:
        fails(horo.HoroError, lambda: horo.broadcast_object(None), "rank 0 could not pickle")
    goes_on()
    if horo.rank() == 0:
        fails(TypeError, lambda: horo.allgather_object(Stubborn()), "not this one")
        fails(TypeError, lambda: on_numpy.broadcast_object(Stubborn()), "not this one")
    else:
        fails(horo.HoroError, lambda: horo.allgather_object(1), "rank 0", "not this one")
        fails(horo.HoroError, lambda: on_numpy.broadcast_object(1), "rank 0 could not pickle")
    goes_on()


def check_arena_full():
    fails(horo.HoroError, lambda: horo.shared_empty((1 << 20, 1 << 20)))
    goes_on()


def check_error_in_backward_leaves_the_optimizer_usable():
    model = torch.nn.Linear(3, 1 + horo.rank() % 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    model(torch.ones(1, 3)).sum().backward()
    fails(horo.MismatchError, optimizer.step, "weight")
    optimizer.zero_grad()
    goes_on()
