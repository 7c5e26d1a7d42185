# SPDX-License-Identifier: Apache-2.0
"""The backend horo of torch.distributed: collectives, messages, groups, works and refusals."""

import datetime
import inspect

import torch
import torch.distributed as dist

from expect import fails
import horo.torch as horo
import horo.torch.distributed as backend

NEW = hasattr(torch.Tensor, "untyped_storage") and hasattr(dist, "all_gather_into_tensor")


def ranks():
    return dist.get_rank(), dist.get_world_size()


def mine(count=4, dtype=torch.float32):
    return (torch.arange(count) + 10 * dist.get_rank()).to(dtype)


def of_all(count=4, dtype=torch.float32):
    return [(torch.arange(count) + 10 * rank).to(dtype) for rank in range(dist.get_world_size())]


def same(found, wanted):
    assert torch.equal(found, wanted), (found, wanted)


def check_begins_in_the_job_that_exists():
    backend.register()  # a second time
    dist.init_process_group("horo")
    assert ranks() == (horo.rank(), horo.size())
    assert dist.get_backend().lower() == "horo"


def check_all_reduce_of_every_type():
    for dtype in (torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        found = mine(dtype=dtype)
        dist.all_reduce(found)
        same(found, sum(of_all(dtype=dtype)))
    found = torch.complex(mine(), -mine())
    dist.all_reduce(found)
    same(found, sum(torch.complex(one, -one) for one in of_all()))


def check_all_reduce_of_every_operation():
    stacked = torch.stack(of_all(dtype=torch.int64)) + 1
    wanted = {
        "MIN": stacked.min(0).values,
        "MAX": stacked.max(0).values,
        "PRODUCT": stacked.prod(0),
        "BAND": stacked[0],
        "BOR": stacked[0],
        "BXOR": stacked[0],
    }
    for row in stacked[1:]:
        wanted["BAND"] = wanted["BAND"] & row
        wanted["BOR"] = wanted["BOR"] | row
        wanted["BXOR"] = wanted["BXOR"] ^ row
    for name, result in wanted.items():
        found = mine(dtype=torch.int64) + 1
        dist.all_reduce(found, op=getattr(dist.ReduceOp, name))
        same(found, result)
    found = mine()
    dist.all_reduce(found, op=dist.ReduceOp.AVG)
    torch.testing.assert_close(found, sum(of_all()) / dist.get_world_size())


def check_tensors_that_are_not_contiguous():
    whole = torch.zeros(4, 3)
    whole[:, 1] = mine()
    dist.all_reduce(whole[:, 1])
    same(whole[:, 1], sum(of_all()))
    same(whole[:, 0], torch.zeros(4))
    dist.broadcast(whole[:, 2].copy_(mine()), src=1)
    same(whole[:, 2], of_all()[1])


def check_sparse_all_reduce():
    rank, size = ranks()
    own = torch.sparse_coo_tensor([[rank, 3]], torch.tensor([1.0, rank + 1.0]), (size + 4,))
    dist.all_reduce(own)
    wanted = torch.zeros(size + 4)
    for other in range(size):
        wanted[other] += 1
        wanted[3] += other + 1
    same(own.to_dense(), wanted)


def check_reduce_leaves_the_other_ranks_alone():
    found = mine()
    dist.reduce(found, dst=1)
    same(found, sum(of_all()) if dist.get_rank() == 1 else mine())


def check_gathers():
    rank, size = ranks()
    found = [torch.zeros(4) for _ in range(size)]
    dist.all_gather(found, mine())
    same(torch.stack(found), torch.stack(of_all()))
    found = torch.zeros(4 * size)
    dist._all_gather_base(found, mine())
    same(found, torch.cat(of_all()))
    uneven = [torch.zeros(other + 1) for other in range(size)]
    dist.all_gather(uneven, mine(rank + 1))
    for other in range(size):
        same(uneven[other], torch.arange(other + 1) + 10.0 * other)
    found = [torch.zeros(4) for _ in range(size)] if rank == 1 else None
    dist.gather(mine(), found, dst=1)
    if rank == 1:
        same(torch.stack(found), torch.stack(of_all()))


def check_scatters():
    rank, size = ranks()
    found = torch.zeros(4)
    dist.scatter(found, of_all() if rank == 0 else None, src=0)
    same(found, mine())
    found = torch.zeros(2)
    dist.reduce_scatter(found, [torch.full((2,), float(other + rank)) for other in range(size)])
    same(found, torch.full((2,), float(sum(range(size)) + size * rank)))
    dist._reduce_scatter_base(found, torch.arange(2.0 * size))
    same(found, size * torch.arange(2.0 * size)[2 * rank : 2 * rank + 2])


def check_all_to_all():
    rank, size = ranks()
    found = [torch.zeros(2) for _ in range(size)]
    dist.all_to_all(found, [torch.full((2,), 10.0 * rank + other) for other in range(size)])
    for other in range(size):
        same(found[other], torch.full((2,), 10.0 * other + rank))
    found = torch.zeros(size, 3)
    dist.all_to_all_single(found, torch.full((size, 3), float(rank)))
    same(found, torch.arange(float(size)).repeat_interleave(3).reshape(size, 3))
    send, receive = [other + 1 for other in range(size)], [rank + 1] * size
    found = torch.zeros(sum(receive))
    dist.all_to_all_single(found, torch.full((sum(send),), float(rank)), receive, send)
    same(found, torch.arange(float(size)).repeat_interleave(rank + 1))


def check_empty_tensors():
    rank, size = ranks()
    nothing = torch.empty(0)
    dist.all_reduce(nothing)
    dist.broadcast(nothing, 0)
    dist.all_gather([torch.empty(0) for _ in range(size)], nothing)
    dist.all_to_all_single(torch.empty(0), torch.empty(0), [0] * size, [0] * size)
    if rank < 2:
        (dist.send if rank == 0 else dist.recv)(nothing, 1 - rank)


def check_objects():
    rank, size = ranks()
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert found == [{"rank": other, "text": "x" * other} for other in range(size)]
    listed = ["a", {"b": 1}] if rank == 0 else [None, None]
    dist.broadcast_object_list(listed, src=0)
    assert listed == ["a", {"b": 1}]
    found = [None]
    dist.scatter_object_list(found, list(range(size)) if rank == 0 else [None] * size, src=0)
    assert found == [rank]


def check_messages_in_any_order():
    """Both directions at once, tags in another order than they were sent, many at once."""
    rank, size = ranks()
    peer = rank ^ 1
    if peer >= size:
        return
    sends = [dist.isend(torch.full((100,), 1000.0 * rank + i), peer, tag=i % 3) for i in range(30)]
    rooms = [torch.zeros(100) for _ in range(30)]
    order = sorted(range(30), key=lambda i: -(i % 3))
    receives = [dist.irecv(rooms[i], peer, tag=i % 3) for i in order]
    for work in receives + sends:
        work.wait()
    for i in range(30):
        same(rooms[i], torch.full((100,), 1000.0 * peer + i))


def check_messages_do_not_need_the_others():
    """Rank 0 and rank 1 exchange messages while the others wait for a later one."""
    rank, size = ranks()
    token = torch.zeros(1)
    for _ in range(3):
        if rank:
            dist.recv(token, rank - 1)
        token += 1
        if rank + 1 < size:
            dist.send(token, rank + 1)
    if rank == size - 1:
        assert token.item() == 2 + size if size == 1 else token.item() >= size


def check_batches_of_messages():
    rank, size = ranks()
    right, left = (rank + 1) % size, (rank - 1) % size
    found = torch.zeros(5)
    operations = [dist.P2POp(dist.isend, mine(5), right), dist.P2POp(dist.irecv, found, left)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    same(found, of_all(5)[left])


def check_any_source_is_refused():
    fails(RuntimeError, lambda: dist.recv(torch.zeros(1)), "any source")
    fails(ValueError, lambda: dist.group.WORLD.send([torch.zeros(1)], dist.get_rank(), 0), "itself")


def check_groups():
    rank, size = ranks()
    last = dist.new_group([size - 1])
    others = dist.new_group(list(range(size - 1)))
    again = dist.new_group(list(range(size - 1)))
    for group in (others, again) if rank < size - 1 else (last,):
        found = torch.ones(3)
        dist.all_reduce(found, group=group)
        same(found, torch.full((3,), float(dist.get_world_size(group))))
    if rank < size - 1:
        dist.destroy_process_group(again)
        found = torch.ones(3)
        dist.all_reduce(found, group=others)
        same(found, torch.full((3,), float(size - 1)))
        dist.destroy_process_group(others)
    else:
        dist.destroy_process_group(last)


def check_groups_that_overlap_and_groups_of_groups():
    rank, size = ranks()
    wants = [[0, 1], list(range(size)), [size - 1, 0], [1], list(range(1, size))]
    groups = [dist.new_group(one) for one in wants]
    for one, group in reversed(list(zip(wants, groups))):
        if rank in one:
            found = torch.ones(2)
            dist.all_reduce(found, group=group)
            same(found, torch.full((2,), float(len(one))))
    for one, group in zip(wants, groups):
        if rank in one:
            parts = dist.group.WORLD.split_group(one) if size > 1 else None
            found = torch.full((1,), 1.0 + rank)
            parts.allreduce([found]).wait()
            same(found, torch.full((1,), float(sum(1 + member for member in one))))
            inner = parts.split_group([0])
            assert (inner is None) == (parts.rank() != 0)
            if inner is not None:
                inner.allreduce([found]).wait()
                inner.shutdown()
            parts.shutdown()
            dist.destroy_process_group(group)
    assert dist.group.WORLD.split_group([(rank + 1) % size]) is None
    dist.barrier()


def check_groups_that_only_their_members_make():
    rank, size = ranks()
    if "use_local_synchronization" not in inspect.signature(dist.new_group).parameters:
        return
    mates = [0, size - 1] if rank in (0, size - 1) else [rank]
    group = dist.new_group(mates, use_local_synchronization=True)
    found = torch.ones(1)
    dist.all_reduce(found, group=group)
    assert found.item() == len(mates)
    dist.destroy_process_group(group)


def check_many_groups_one_after_another():
    rank, size = ranks()
    for turn in range(40):
        group = dist.new_group([0, size - 1])
        if rank in (0, size - 1):
            found = torch.ones(1)
            dist.all_reduce(found, group=group)
            same(found, torch.full((1,), 2.0))
            dist.destroy_process_group(group)


def check_works_and_futures():
    size = dist.get_world_size()
    work = dist.all_reduce(torch.ones(4), async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    same(work.result()[0], torch.full((4,), float(size)))
    futures = [dist.all_reduce(torch.full((4,), float(i)), async_op=True).get_future() for i in range(50)]
    for i, future in enumerate(futures):
        same(future.then(lambda done: done.value()[0] + 1).wait(), torch.full((4,), 1.0 + i * size))


def check_a_work_that_is_completed_has_its_result():
    """Also where the ranks compute it after the last operation, and nobody waits."""
    size, places = dist.get_world_size(), torch.tensor([[0, 2]])
    found = torch.sparse_coo_tensor(places, torch.ones(2), (4,))
    work = dist.all_reduce(found, async_op=True)
    while not work.is_completed():
        pass
    same(found.to_dense(), torch.tensor([1.0, 0.0, 1.0, 0.0]) * size)
    tensors = [mine(dtype=torch.int64), mine(3, dtype=torch.int64)]
    work = dist.group.WORLD.allreduce_coalesced(tensors, dist.ReduceOp.BOR)
    while not work.is_success():
        pass
    wanted = of_all(3, dtype=torch.int64)
    for row in wanted[1:]:
        wanted[0] |= row
    same(tensors[1], wanted[0])


def check_more_in_flight_than_names():
    size = dist.get_world_size()
    tensors = [torch.full((8,), float(i)) for i in range(200)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, work in enumerate(works):
        work.wait()
        same(tensors[i], torch.full((8,), float(i * size)))


def check_works_that_nobody_waits_for():
    for _ in range(100):
        dist.all_reduce(torch.ones(1000), async_op=True)
    dist.barrier()


def check_coalesced():
    rank, size = ranks()
    tensors = [mine(), mine(7)]
    dist.all_reduce_coalesced(tensors)
    same(tensors[1], sum(of_all(7)))
    if not NEW:
        return
    wholes = [torch.zeros(4 * size), torch.zeros(2 * size)]
    with dist._coalescing_manager(async_ops=True) as works:
        for whole, part in zip(wholes, (mine(), mine(2))):
            dist.all_gather_into_tensor(whole, part)
    works.wait()
    same(wholes[0], torch.cat(of_all()))
    same(wholes[1], torch.cat(of_all(2)))


def check_barriers():
    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30), wait_all_ranks=True)


def check_wrong_arguments_are_refused_here():
    size = dist.get_world_size()
    fails(ValueError, lambda: dist.group.WORLD.allreduce([torch.zeros(2, dtype=torch.complex32)]), "cannot be reduced")
    fails(ValueError, lambda: dist.all_reduce(torch.zeros(2), op=dist.ReduceOp.BAND), "BAND")
    fails(ValueError, lambda: dist.group.WORLD._allgather_base(torch.zeros(size * 2 + 1), torch.zeros(2)), "output must be")
    fails(ValueError, lambda: dist.group.WORLD.allreduce([torch.zeros(2, device="meta")]), "meta")
    for root in (size, -1):
        named = f"rank {root} is not in process group"
        fails(ValueError, lambda: dist.group.WORLD.broadcast([mine()], root), named)
        fails(ValueError, lambda: dist.group.WORLD.reduce([mine()], root), named)
        fails(ValueError, lambda: dist.group.WORLD.gather([], [mine()], root=root), named)
        fails(ValueError, lambda: dist.group.WORLD.scatter([mine()], [], root=root), named)


def check_nothing_falls_through():
    """Each method of torch's class is ours, or raises; no other backend is behind it."""
    base, ours = type(dist.group.WORLD).__mro__[1], type(dist.group.WORLD)
    of_the_base = {"boxed", "unbox", "BackendType", "Options", "_pybind11_conduit_v1_"}
    for name, inherited in vars(base).items():
        if callable(inherited) and not name.startswith("__") and name not in of_the_base:
            assert name in vars(ours), name
    if hasattr(base, "_enable_collectives_timing"):
        fails(NotImplementedError, lambda:     dist.group.WORLD._enable_collectives_timing(), "_enable_collectives_timing")


def check_ends():
    dist.barrier()
    dist.destroy_process_group()
    assert horo.is_initialized()  # the program has joined the job by itself
