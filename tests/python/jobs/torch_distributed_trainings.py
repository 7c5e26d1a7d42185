# SPDX-License-Identifier: Apache-2.0
"""torch's own distributed trainings on the backend horo. Each equals the training of one process with the
batches of all ranks."""

import contextlib
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

import horo.torch as horo
import horo.torch.distributed as backend

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
CPU = torch.device("cpu")


def model():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def batch(step, rank):
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(100 * step + rank))


def loss_of(network, step, rank):
    return network(batch(step, rank)).square().mean()


def alone(steps=3):
    """The parameters after a training of one process with the batches of all ranks."""
    network, size = model(), dist.get_world_size()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        sum(loss_of(network, step, rank) for rank in range(size)).div(size).backward()
        optimizer.step()
    return [parameter.detach() for parameter in network.parameters()]


def train(network, optimizer, steps=3):
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(network, step, dist.get_rank()).backward()
        optimizer.step()


def require_equal(parameters, tolerance=1e-5):
    for found, wanted in zip(parameters, alone()):
        torch.testing.assert_close(found.detach(), wanted, rtol=tolerance, atol=tolerance)


def sgd(network):
    return torch.optim.SGD(network.parameters(), lr=0.5, momentum=0.9)


def check_begins():
    backend.register()
    dist.init_process_group("horo")


def check_data_parallel():
    for options in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}, {"bucket_cap_mb": 0.0005}):
        network = DistributedDataParallel(model(), **options)
        train(network, sgd(network))
        require_equal(network.module.parameters())


def check_data_parallel_with_hooks():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    for hook, tolerance in ((default_hooks.allreduce_hook, 1e-5), (default_hooks.fp16_compress_hook, 1e-2)):
        network = DistributedDataParallel(model())
        network.register_comm_hook(None, hook)
        train(network, sgd(network))
        require_equal(network.module.parameters(), tolerance)
    network = DistributedDataParallel(model())
    state = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2)
    network.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    train(network, sgd(network), steps=5)


def check_accumulation_and_unused_parameters():
    network = DistributedDataParallel(model(), find_unused_parameters=True)
    optimizer = sgd(network)
    for step in range(3):
        optimizer.zero_grad()
        with network.no_sync():
            (loss_of(network, step, dist.get_rank()) / 2).backward()
        (loss_of(network, step, dist.get_rank()) / 2).backward()
        optimizer.step()
    require_equal(network.module.parameters())


def check_uneven_inputs():
    network = DistributedDataParallel(model())
    optimizer = sgd(network)
    with network.join():
        for step in range(1 + dist.get_rank()):
            optimizer.zero_grad()
            loss_of(network, step, dist.get_rank()).backward()
            optimizer.step()


def check_sharded_optimizer():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    network = DistributedDataParallel(model())
    shards = ZeroRedundancyOptimizer(network.parameters(), torch.optim.SGD, lr=0.5, momentum=0.9)
    train(network, shards)
    require_equal(network.module.parameters())
    shards.consolidate_state_dict(to=0)


def check_fully_sharded_1():
    if VERSION < (2, 3):
        return  # needs a GPU before
    from torch.distributed.fsdp import FullyShardedDataParallel

    network = FullyShardedDataParallel(model(), device_id=CPU, use_orig_params=True)
    train(network, sgd(network))
    with FullyShardedDataParallel.summon_full_params(network):
        require_equal(network.parameters())


def sharded():
    from torch.distributed.fsdp import fully_shard

    network = model()
    for layer in network:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    return fully_shard(network)


def check_fully_sharded_2():
    if VERSION < (2, 6):
        return
    network = sharded()
    train(network, sgd(network))
    require_equal(parameter.full_tensor() for parameter in network.parameters())


def check_distributed_tensors():
    if VERSION < (2, 5):
        return
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for shape in ((8, 8), (7, 5)):
        whole = torch.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape)
        rows = distribute_tensor(whole, mesh, [Shard(0)])
        assert torch.equal(rows.redistribute(mesh, [Shard(1)]).full_tensor(), whole)
        product = rows @ distribute_tensor(whole.t().contiguous(), mesh, [Replicate()])
        assert torch.equal(product.full_tensor(), whole @ whole.t())


def check_pipelines():
    if VERSION < (2, 6):
        return
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    layers = [nn.Linear(8, 8) for _ in range(size)]
    wanted = nn.MSELoss()(nn.Sequential(*layers)(torch.ones(8, 8)), torch.zeros(8, 8)).item()
    for kind in (ScheduleGPipe, Schedule1F1B):
        schedule = kind(PipelineStage(layers[rank], rank, size, CPU), 4, loss_fn=nn.MSELoss())
        losses = []
        if rank == size - 1:
            schedule.step(target=torch.zeros(8, 8), losses=losses)
            assert abs(sum(losses).item() / 4 - wanted) < 1e-5
        else:
            schedule.step(*([torch.ones(8, 8)] if rank == 0 else []))


def check_checkpoints():
    if VERSION < (2, 6):
        return
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    network = sharded()
    optimizer = torch.optim.AdamW(network.parameters())
    train(network, optimizer)
    with contextlib.ExitStack() as stack:
        place = [stack.enter_context(tempfile.TemporaryDirectory()) if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(place, src=0)
        before = [parameter.full_tensor().clone() for parameter in network.parameters()]
        saved, moments = get_state_dict(network, optimizer)
        checkpoint.save({"model": saved, "optimizer": moments}, checkpoint_id=place[0])
        train(network, optimizer)
        saved, moments = get_state_dict(network, optimizer)
        loaded = {"model": saved, "optimizer": moments}
        checkpoint.load(loaded, checkpoint_id=place[0])
        set_state_dict(
            network, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"]
        )
        for found, wanted in zip(network.parameters(), before):
            assert torch.equal(found.full_tensor(), wanted)
        dist.barrier()


def check_compiled():
    if VERSION < (2, 6):
        return
    from torch.distributed import _functional_collectives as functional

    size = dist.get_world_size()

    def function(tensor):
        total = functional.all_reduce(tensor * 2, "sum", dist.group.WORLD)
        whole = functional.all_gather_tensor(total, 0, dist.group.WORLD)
        return functional.reduce_scatter_tensor(whole, "sum", 0, dist.group.WORLD) + 1

    compiled = torch.compile(function, backend="aot_eager")
    assert torch.equal(compiled(torch.ones(4)), torch.full((4,), 2.0 * size * size + 1))
    network = DistributedDataParallel(model())
    fast = torch.compile(network, backend="aot_eager")
    train(fast, sgd(network))
    require_equal(network.module.parameters())


def check_ends():
    dist.barrier()
    dist.destroy_process_group()
