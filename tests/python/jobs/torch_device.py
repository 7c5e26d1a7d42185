# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch in the memory of a device: all collectives and whole trainings on the software device
give what they give in the host's memory, whatever the pauses of its streams are, and the device finds no use
of memory that is not ordered."""

import gc
import itertools
import os

import torch
import torch.nn.functional as F

import horo.torch as horo
import software_torch as software
from expect import fails
from horo import _handles
from horo.torch import _devices

DEVICE = software.DEVICE
SEEDS = int(os.environ.get("HORO_TEST_SEEDS", "6"))


def seeded(seed):
    """Pauses of up to 8 x 60 microseconds, which differ between the ranks."""
    software.plan(f"seed={seed * 64 + horo.rank()} delay={seed % 4 * 20}")


def own(*shape, dtype=torch.float32, offset=0):
    """This rank's numbers, in the host's memory."""
    count = 1
    for extent in shape:
        count *= extent
    numbers = (torch.arange(count) * (horo.rank() + 1 + offset)) % 7 + horo.rank()
    return numbers.reshape(shape).to(dtype)


def same(found, expected):
    assert found.device.type == software.NAME, found.device
    assert torch.equal(found.cpu(), expected), (found.cpu(), expected)


def both(function, *arguments):
    """The results of a collective with tensors of the host, and with those of the device."""

    def moved(value):
        if isinstance(value, torch.Tensor):
            return value.clone().to(DEVICE)
        return [moved(one) for one in value] if isinstance(value, list) else value

    theirs = [moved(one) for one in arguments]  # before the first call, which may change its own
    return function(*arguments), function(*theirs)


def compare(function, *arguments):
    expected, found = both(function, *arguments)
    pairs = [(found, expected)] if isinstance(expected, torch.Tensor) else list(zip(found, expected))
    for one, other in pairs:
        same(one, other)


def check_tensors_of_the_device_are_not_copied_to_the_host():
    tensor = own(1000).to(DEVICE)
    place = _devices.place_of(tensor)
    assert place is not None and place.index == software.INDEX and repr(place) == DEVICE
    before = tensor.data_ptr()
    handle = horo.allreduce_async_(tensor, name="in.place", op=horo.Sum)
    assert _handles.PENDING[handle][2] is place
    assert horo.synchronize(handle) is tensor and tensor.data_ptr() == before
    same(tensor, sum((torch.arange(1000) * (r + 1)) % 7 + r for r in range(horo.size())).float())
    software.require_no_findings()


def check_all_collectives_agree_with_the_host():
    for seed in range(SEEDS):
        seeded(seed)
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8):
            compare(lambda t: horo.allreduce(t, op=horo.Sum), own(33, 5, dtype=dtype))
            compare(lambda t: horo.allreduce(t, op=horo.Max), own(1000, dtype=dtype))
        compare(lambda t: horo.allreduce(t, op=horo.Average, prescale_factor=0.5), own(2000))
        compare(lambda t: horo.allreduce_(t, op=horo.Min), own(7))
        compare(lambda t: horo.allgather(t), own(3 + horo.rank(), 4))
        compare(lambda t: horo.broadcast(t, horo.size() - 1), own(50))
        compare(lambda t: horo.broadcast_(t, 0), own(5, 5))
        compare(lambda t: horo.reducescatter(t, op=horo.Sum), own(2 * horo.size() + 1, 3))
        compare(lambda t: horo.alltoall(t), own(2 * horo.size(), 3))
        compare(lambda t: horo.grouped_allreduce(t, op=horo.Sum), [own(9), own(70), own(2, 2)])
        compare(lambda t: horo.grouped_allgather(t), [own(1, 2), own(horo.rank() + 1, 2)])
        compare(lambda t: horo.grouped_reducescatter(t, op=horo.Sum), [own(8, 2), own(8)])
        software.require_no_findings()


def check_uneven_splits_and_sizes_that_change():
    rank, size = horo.rank(), horo.size()
    for seed in range(SEEDS):
        seeded(seed)
        for rows in (1, 4, 4, 0, 2):  # from the second one on, the result has a place before
            splits = [rows + (rank + other) % 2 for other in range(size)]
            mine = own(sum(splits), 3, offset=rows)
            expected, received = horo.alltoall(mine, splits, name="uneven.host")
            found, counts = horo.alltoall(mine.to(DEVICE), splits, name="uneven.device")
            same(found, expected)
            assert torch.equal(counts.cpu(), received)
            compare(
                lambda t: horo.allgather(t, name=f"rows.{t.device.type}"),
                own(rows if rank == 0 else 2, 2),
            )
        software.require_no_findings()


def check_layouts_that_need_a_copy():
    seeded(1)
    compare(lambda t: horo.allreduce(t.t(), op=horo.Sum), own(6, 4))
    compare(lambda t: horo.allreduce_(t[:, 1], op=horo.Sum), own(5, 3))
    complex_numbers = torch.complex(own(4), own(4, offset=1))
    found = horo.allreduce(complex_numbers, op=horo.Sum)
    device = torch.view_as_real(complex_numbers).to(DEVICE)
    same(horo.allreduce(device, op=horo.Sum), torch.view_as_real(found))
    empty = torch.empty(0, 3)
    compare(lambda t: horo.allreduce(t, op=horo.Sum), empty)
    compare(lambda t: horo.allgather(t), empty)
    software.require_no_findings()


def check_the_result_is_waited_for_by_the_stream_and_not_by_the_host():
    software.plan("delay=20000")
    tensor = torch.ones(1000).to(DEVICE)
    handle = horo.allreduce_async_(tensor, name="stream.waits", op=horo.Sum)
    horo.synchronize(handle)
    assert handle in _handles._retired or not _handles._retired
    with software.apart_on(software.new_stream()):
        pass
    same(tensor, torch.full((1000,), float(horo.size())))
    software.require_no_findings()


def check_a_training_step_never_waits_for_the_device():
    """From the hook to the optimizer's step, no call of the driver waits."""
    software.plan("delay=500")
    model = network(DEVICE)
    plain = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = horo.DistributedOptimizer(plain, model.named_parameters())
    batches = [tuple(one.to(DEVICE) for one in batch(step)) for step in range(4)]
    for x, y in batches:
        before = software.waits()
        optimizer.zero_grad()
        squares(model(x), y).backward()
        optimizer.step()
        assert software.waits() == before
    software.require_no_findings()


def check_a_name_is_used_again_before_the_device_has_finished():
    software.plan(f"seed={horo.rank()} delay=2000")
    tensor = torch.ones(64).to(DEVICE)
    for _ in range(5):
        horo.synchronize(horo.allreduce_async_(tensor, name="again", op=horo.Average))
        tensor = torch.cat([tensor, tensor])  # another signature of the same name
    same(tensor, torch.ones(64 * 32))
    software.require_no_findings()


def check_tensors_may_die_and_streams_may_change_before_the_end():
    """Torch gives the memory of a dead tensor to the next one. The device would find a use of it that is not
    behind the operation."""
    streams = [software.new_stream() for _ in range(3)]
    for seed in range(SEEDS):
        seeded(seed + 1)
        handles, expected = [], []
        for index, stream in zip(range(12), itertools.cycle(streams)):
            with software.on_stream(stream):
                mine = own(300, offset=index).to(DEVICE) * 2
                name = f"dies.{index}"
                if index % 3:
                    handles.append(horo.allreduce_async(mine, name=name, op=horo.Sum))
                else:
                    handles.append(horo.allgather_async(mine, name=name))
                del mine
                _ = torch.ones(300).to(DEVICE) + 1  # takes the memory if it is free
            total = own(300, offset=index) * 2
            expected.append(horo.allreduce(total, op=horo.Sum) if index % 3 else horo.allgather(total))
        found = []
        for index, handle in enumerate(handles):
            with software.on_stream(streams[(index + 1) % 3]):
                found.append(horo.synchronize(handle))
                _ = torch.zeros(300).to(DEVICE) + 3
        for one, other in zip(found, expected):
            same(one, other)
        del found
        software.require_no_findings()


def check_handles_that_nobody_waits_for():
    seeded(2)
    for index in range(5):
        horo.allreduce_async(torch.ones(10).to(DEVICE), name=f"left.{index}", op=horo.Sum)
    gc.collect()
    horo.barrier()
    same(horo.allreduce(torch.ones(10).to(DEVICE), op=horo.Sum), torch.full((10,), float(horo.size())))
    for handle in [one for one in list(_handles.PENDING) if one > 0]:
        horo.synchronize(handle)
    software.require_no_findings()


# -- Trainings -----------------------------------------------------------------------------------


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.second = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


def squares(found, wanted):
    return ((found - wanted) ** 2).mean()


def network(device):
    torch.manual_seed(4)
    return Two().to(device)


def batch(step):
    generator = torch.Generator().manual_seed(100 * step + horo.rank())
    return torch.randn(5, 6, generator=generator), torch.randn(5, 3, generator=generator)


def train(device, steps=4, stream=None, set_to_none=True, views=False, scale=1.0, **options):
    """The parameters after training."""
    model = network(device)
    plain = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = horo.DistributedOptimizer(plain, model.named_parameters(), **options)
    horo.broadcast_parameters(model.state_dict(), root_rank=0)
    horo.broadcast_optimizer_state(optimizer, root_rank=0)
    if views:  # one bucket, of which all gradients are views
        bucket = torch.zeros(sum(p.numel() for p in model.parameters()), device=device)
        at = 0
        for parameter in model.parameters():
            parameter.grad = bucket[at : at + parameter.numel()].view_as(parameter)
            at += parameter.numel()
    passes = options.get("backward_passes_per_step", 1)
    for step in range(steps):
        optimizer.zero_grad(set_to_none=set_to_none and not views)
        for part in range(passes):
            x, y = (one.to(device) for one in batch(step * passes + part))
            loss = squares(model(x), y) * scale
            loss.backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


def agree(rtol=1e-5, atol=1e-6, **options):
    expected = train("cpu", **options)
    for seed in range(SEEDS):
        seeded(seed)
        for one, other in zip(train(DEVICE, **options), expected):
            torch.testing.assert_close(one, other, rtol=rtol, atol=atol)
        software.require_no_findings()


def check_training_equals_training_on_the_host():
    agree()


def check_training_with_gradients_that_stay():
    agree(set_to_none=False)


def check_training_with_a_bucket_of_gradients():
    agree(views=True)


def check_training_with_groups_and_several_passes():
    agree(groups=2, backward_passes_per_step=2)


def check_training_with_compression():
    # NCCL rounds to 8 bits after each rank's share, the host once.
    agree(compression=horo.Compression.bf16, rtol=2**-7, atol=1e-3)


def check_training_with_adasum():
    agree(op=horo.Adasum)


def check_training_on_a_stream_of_its_own():
    expected = train("cpu")
    stream = software.new_stream()
    for seed in range(SEEDS):
        seeded(seed)
        with software.on_stream(stream):
            found = train(DEVICE)
        for one, other in zip(found, expected):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
        software.require_no_findings()


def check_forward_on_one_stream_and_step_on_another():
    """Gradients are computed, and their reductions submitted, on the stream of the forward pass."""
    expected = train("cpu")
    side = software.new_stream()
    for seed in range(SEEDS):
        seeded(seed)
        model = network(DEVICE)
        plain = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        optimizer = horo.DistributedOptimizer(plain, model.named_parameters())
        horo.broadcast_parameters(model.state_dict(), root_rank=0)
        for step in range(4):
            optimizer.zero_grad()
            x, y = (one.to(DEVICE) for one in batch(step))
            with software.on_stream(side):
                squares(model(x), y).backward()
            optimizer.step()
        for one, other in zip(model.parameters(), expected):
            torch.testing.assert_close(one.detach().cpu(), other, rtol=1e-5, atol=1e-6)
        software.require_no_findings()


def check_groups_of_gradients_from_two_streams():
    """Hooks of two streams, as where branches of a model run on two: each gradient is computed on the
    stream of its own hook, and the group is submitted in the last one."""
    streams = [software.new_stream() for _ in range(2)]
    for seed, compression in itertools.product(
        range(SEEDS), (horo.Compression.none, horo.Compression.fp16)
    ):
        seeded(seed)
        model = network(DEVICE)
        plain = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = horo.DistributedOptimizer(
            plain, model.named_parameters(), compression=compression, groups=1
        )
        software.synchronize()
        for step in range(2):
            gradients = optimizer._horo_reducer.gradients
            for gradient, stream in zip(gradients, itertools.cycle(streams)):
                with software.apart_on(stream):
                    ones = torch.ones(gradient.parameter.shape).to(DEVICE)
                    gradient.parameter.grad = ones * (horo.rank() + step)
                    gradient.computed()
            optimizer.synchronize()
            for gradient in gradients:
                average = (horo.size() - 1) / 2 + step
                same(gradient.parameter.grad, torch.full(gradient.parameter.shape, average))
            optimizer.zero_grad()
        software.require_no_findings()


def check_amp_scaler():
    """A step whose gradients overflow on one rank is left out on all."""
    for seed in range(2):
        seeded(seed)
        model = network(DEVICE)
        plain = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = horo.DistributedOptimizer(plain, model.named_parameters())
        horo.broadcast_parameters(model.state_dict(), root_rank=0)
        scaler = torch.amp.GradScaler(software.NAME, init_scale=1024.0)
        start = [one.detach().cpu().clone() for one in model.parameters()]
        for step in range(2):
            optimizer.zero_grad()
            x, y = (one.to(DEVICE) for one in batch(step))
            loss = squares(model(x), y)
            if step == 0 and horo.rank() == 0:
                loss = loss * float("inf")
            scaler.scale(loss).backward()
            optimizer.synchronize()
            scaler.unscale_(optimizer)
            with optimizer.skip_synchronize():
                scaler.step(optimizer)
            scaler.update()
            now = [one.detach().cpu() for one in model.parameters()]
            moved = any(not torch.equal(one, other) for one, other in zip(now, start))
            assert moved == (step == 1), step
        assert scaler.get_scale() == 512.0
        software.require_no_findings()


def check_a_compiled_model():
    """torch.compile leaves the hooks to the interpreter; their tensors go to the runtime as ever."""
    seeded(6)
    model = network(DEVICE)
    compiled = torch.compile(model, backend="eager")
    plain = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = horo.DistributedOptimizer(plain, model.named_parameters())
    for step in range(4):
        optimizer.zero_grad()
        x, y = (one.to(DEVICE) for one in batch(step))
        squares(compiled(x), y).backward()
        optimizer.step()
    for one, other in zip(model.parameters(), train("cpu")):
        torch.testing.assert_close(one.detach().cpu(), other, rtol=1e-5, atol=1e-6)
    software.require_no_findings()


def check_sparse_gradients():
    results = []
    for device in ("cpu", DEVICE):
        torch.manual_seed(3)
        table = torch.nn.Embedding(10, 4, sparse=True).to(device)
        plain = torch.optim.SGD(table.parameters(), lr=0.5)
        optimizer = horo.DistributedOptimizer(plain, table.named_parameters(), sparse_as_dense=True)
        try:
            table(torch.tensor([horo.rank(), 3]).to(device)).sum().backward()
        except NotImplementedError:  # this torch has no sparse tensors on devices of others
            return
        optimizer.step()
        results.append(table.weight.detach().cpu())
    torch.testing.assert_close(*results)
    software.require_no_findings()


def check_sets_of_ranks():
    seeded(3)
    first = horo.add_process_set(range(horo.size() - 1))
    if first.included():
        tensor = torch.ones(100).to(DEVICE)
        same(
            horo.allreduce(tensor, op=horo.Sum, process_set=first),
            torch.full((100,), horo.size() - 1.0),
        )
    horo.remove_process_set(first)
    software.require_no_findings()


def check_join():
    seeded(4)
    if horo.rank() == 0:
        same(
            horo.allreduce(torch.ones(20).to(DEVICE), name="before", op=horo.Sum),
            torch.full((20,), float(horo.size())),
        )
        assert horo.join() >= 0
    else:
        horo.allreduce(torch.ones(20).to(DEVICE), name="before", op=horo.Sum)
        total = horo.allreduce(torch.ones(30).to(DEVICE), name="partial", op=horo.Sum)
        same(total, torch.full((30,), horo.size() - 1.0))
        assert horo.join() >= 0
    software.require_no_findings()


def check_batch_norm_over_all_ranks():
    seeded(5)
    results = []
    for device in ("cpu", DEVICE):
        layer = horo.SyncBatchNorm(4).to(device)
        results.append(layer(own(6, 4).to(device)).detach().cpu())
    torch.testing.assert_close(*results)
    software.require_no_findings()


# -- Mistakes ------------------------------------------------------------------------------------


def check_host_and_device_in_one_group():
    mixed = [torch.ones(2), torch.ones(2).to(DEVICE)]
    fails(
        ValueError,
        lambda: horo.grouped_allreduce(mixed, op=horo.Sum),
        f"the tensors of a group are on cpu and {DEVICE}; they must be on one device",
    )


def check_host_memory_on_one_rank_and_device_memory_on_another():
    tensor = torch.ones(5)
    if horo.rank():
        tensor = tensor.to(DEVICE)
    fails(
        horo.MismatchError,
        lambda: horo.allreduce(tensor, name="mixed", op=horo.Sum),
        "mixed",
        "disagree about the memory",
        "host memory on rank 0",
    )
    same(
        horo.allreduce(torch.ones(5).to(DEVICE), name="mixed", op=horo.Sum),
        torch.full((5,), float(horo.size())),
    )


def check_a_stream_that_is_captured():
    tensor = torch.ones(5).to(DEVICE)
    software.plan("capturing=1")
    fails(
        horo.HoroError,
        lambda: horo.allreduce(tensor, name="captured", op=horo.Sum),
        "captured to a graph",
        "submit outside the capture",
    )
    software.plan("")
    same(
        horo.allreduce(tensor, name="captured", op=horo.Sum), torch.full((5,), float(horo.size()))
    )


def check_an_error_of_the_device_reaches_the_program():
    """The copy to the host fails on rank 0: all ranks are told, and the next operation works."""
    tensor = torch.ones(1000).to(DEVICE)
    horo.allreduce(tensor, name="fault", op=horo.Sum)
    software.synchronize()
    horo.barrier()
    if os.environ.get("HORO_GPU_OPERATIONS") != "staged":
        return
    if horo.rank() == 0:
        software.plan("fail=cuEventRecord@2:719")
    words = f"device {software.INDEX} of host " if horo.rank() == 0 else "rank 0 could not copy"
    fails(horo.HoroError, lambda: horo.allreduce(tensor, name="fault", op=horo.Sum), words)
    software.plan("")
    horo.barrier()
    horo.allreduce(tensor, name="fault", op=horo.Sum)


def check_what_is_built():
    assert horo.cuda_built() is (software.LIBRARY == "cuda")
    assert horo.rocm_built() is (software.LIBRARY == "rocm")
    assert bool(horo.nccl_built()) == (os.environ.get("HORO_GPU_OPERATIONS", "auto") in ("auto", "nccl"))
