# SPDX-License-Identifier: Apache-2.0
"""A framework of 60 lines gets every collective: a Face over array.array."""

import array
import math
import pickle
import types

from horo import _barrier, _job, _life, _objects, _sets
from horo._arguments import AVERAGE, MAX, SUM
from horo._collectives import Collectives
from horo._face import Face
from horo._handles import poll, synchronize
from expect import fails

horo = types.SimpleNamespace(
    init=_life.init,
    shutdown=_life.shutdown,
    rank=_job.rank,
    size=_job.size,
    barrier=_barrier.barrier,
)

DTYPES = {"f": "float32", "d": "float64", "q": "int64"}


class Plate:
    """An array of this framework. A mirrored one stores its numbers in reverse order, so the
    runtime cannot use its memory."""

    def __init__(self, shape, numbers, dtype="d", mirrored=False):
        numbers = list(numbers)
        self.shape, self.dtype, self.mirrored = tuple(shape), dtype, mirrored
        self.data = array.array(dtype, numbers[::-1] if mirrored else numbers)
        assert len(self.data) == math.prod(self.shape)

    def tolist(self):
        return self.data.tolist()[::-1] if self.mirrored else self.data.tolist()


class PlateFace(Face):
    def array(self, given):
        if not isinstance(given, Plate):
            raise ValueError(f"{type(given).__name__} is not a Plate")
        return given

    def view(self, plate):
        return None if plate.mirrored else plate

    def copy_in(self, plate):
        return Plate(plate.shape, plate.tolist(), plate.dtype)

    def copy_out(self, part, plate):
        plate.data[:] = part.data[::-1]

    def wrap(self, part, like):
        return Plate(part.shape, part.tolist(), part.dtype, mirrored=True) if like.mirrored else part

    def empty(self, shape, like):
        return Plate(shape, [0] * math.prod(shape), like.dtype)

    def empty_like(self, plate):
        return Plate(plate.shape, [0] * len(plate.data), plate.dtype, plate.mirrored)

    def pointer(self, part):
        return part.data.buffer_info()[0]

    def dtype(self, part):
        return DTYPES[part.dtype]

    def nbytes(self, part):
        return len(part.data) * part.data.itemsize


plates = Collectives(PlateFace(), __name__, "plates")


def mine(shape, mirrored=False, dtype="d"):
    """1, 2, 3, ... times the rank's number from 1 on."""
    count = math.prod(shape)
    numbers = [(i + 1) * (horo.rank() + 1) for i in range(count)]
    return Plate(shape, numbers, dtype, mirrored)


def all_ranks():
    return range(1, horo.size() + 1)


def both_kinds(check):
    for mirrored in (False, True):
        check(mirrored)


def same(found, shape, numbers, mirrored):
    assert found.shape == tuple(shape), found.shape
    assert found.tolist() == list(numbers), (found.tolist(), numbers)
    assert found.mirrored == mirrored


def check_allreduce():
    total = sum(all_ranks())

    def check(mirrored):
        given = mine((2, 3), mirrored)
        before = given.tolist()
        same(plates.allreduce(given, op=SUM), (2, 3), [total * i for i in range(1, 7)], mirrored)
        assert given.tolist() == before
        same(plates.allreduce(given, op=MAX), (2, 3), [horo.size() * i for i in range(1, 7)], mirrored)
        assert plates.allreduce_(given, op=SUM) is given
        same(given, (2, 3), [total * i for i in range(1, 7)], mirrored)
        handle = plates.allreduce_async(mine((1,), mirrored), op=AVERAGE, prescale_factor=2.0)
        same(synchronize(handle), (1,), [2.0 * total / horo.size()], mirrored)
        handle = plates.allreduce_async_(mine((1,), mirrored), name="one", op=SUM)
        poll(handle)
        same(synchronize(handle), (1,), [total], mirrored)

    both_kinds(check)


def check_grouped_allreduce():
    total = sum(all_ranks())

    def check(mirrored):
        given = [mine((2,), mirrored), mine((1, 3), mirrored)]
        for start in (plates.grouped_allreduce, plates.grouped_allreduce_):
            first, second = start(given, op=SUM)
            same(first, (2,), [total, 2 * total], mirrored)
            same(second, (1, 3), [total, 2 * total, 3 * total], mirrored)
        assert first is given[0]
        handle = plates.grouped_allreduce_async([mine((1,), mirrored)], op=SUM)
        same(synchronize(handle)[0], (1,), [total], mirrored)
        handle = plates.grouped_allreduce_async_([mine((1,), mirrored)], op=SUM)
        same(synchronize(handle)[0], (1,), [total], mirrored)

    both_kinds(check)


def check_reducescatter():
    total, ranks, me = sum(all_ranks()), horo.size(), horo.rank()
    numbers = [total * (i + 1) for i in range(2 * ranks + 1)]  # rank 0 gets one row more
    first = 0 if me == 0 else 2 * me + 1
    own = numbers[first : first + (3 if me == 0 else 2)]

    def check(mirrored):
        given = mine((2 * ranks + 1,), mirrored)
        same(plates.reducescatter(given, op=SUM), (len(own),), own, mirrored)
        same(synchronize(plates.reducescatter_async(given, op=SUM)), (len(own),), own, mirrored)
        pair = plates.grouped_reducescatter([given, given], op=SUM)
        pair += synchronize(plates.grouped_reducescatter_async([given, given], op=SUM))
        for found in pair:
            same(found, (len(own),), own, mirrored)

    both_kinds(check)


def check_allgather():
    numbers = [(i + 1) * rank for rank in all_ranks() for i in range(2 * rank)]

    def check(mirrored):
        given = mine((horo.rank() + 1, 2), mirrored)
        shape = (sum(all_ranks()), 2)
        for _ in range(3):  # from the second one on, the result's memory is offered before
            same(plates.allgather(given, name="rows"), shape, numbers, mirrored)
        same(synchronize(plates.allgather_async(given)), shape, numbers, mirrored)
        pair = plates.grouped_allgather([given, given])
        pair += synchronize(plates.grouped_allgather_async([given, given]))
        for found in pair:
            same(found, shape, numbers, mirrored)

    both_kinds(check)


def check_alltoall():
    ranks, me = horo.size(), horo.rank()

    def check(mirrored):
        given = mine((ranks,), mirrored)
        numbers = [(me + 1) * rank for rank in all_ranks()]
        same(plates.alltoall(given), (ranks,), numbers, mirrored)
        rows, received = plates.alltoall(given, [1] * ranks)
        same(rows, (ranks,), numbers, mirrored)
        assert received == [1] * ranks
        rows, received = synchronize(plates.alltoall_async(given, [1] * ranks))
        same(rows, (ranks,), numbers, mirrored)

    both_kinds(check)


def check_broadcast():
    root = horo.size() - 1
    numbers = [horo.size(), 2 * horo.size()]

    def check(mirrored):
        given = mine((2,), mirrored)
        same(plates.broadcast(given, root), (2,), numbers, mirrored)
        same(synchronize(plates.broadcast_async(given, root)), (2,), numbers, mirrored)
        assert plates.broadcast_(given, root) is given
        same(given, (2,), numbers, mirrored)
        same(synchronize(plates.broadcast_async_(mine((2,)), root)), (2,), numbers, False)

    both_kinds(check)


def check_objects_need_no_framework():
    root = horo.size() - 1
    assert _objects.broadcast_object({"from": horo.rank()}, root) == {"from": root}
    assert _objects.allgather_object("a" * horo.rank()) == ["a" * i for i in range(horo.size())]


def check_process_sets_and_dtypes():
    if horo.size() > 1:
        last = _sets.add_process_set([horo.size() - 1])
        own = mine((2,))
        if last.included():
            same(plates.allreduce(own, process_set=last), (2,), own.tolist(), False)
        else:
            fails(ValueError, lambda: plates.allreduce(own, process_set=last), "not in process set")
        _sets.remove_process_set(last)
    for dtype in DTYPES:
        found = plates.allreduce(mine((3,), dtype=dtype), op=SUM)
        assert found.dtype == dtype and found.tolist()[0] == sum(all_ranks())


def check_refusals():
    fails(ValueError, lambda: plates.allreduce([1.0]), "list", "Plate")
    fails(ValueError, lambda: plates.allgather(Plate((), [1.0])), "allgather", "one dimension")
    fails(ValueError, lambda: plates.allreduce(mine((1,)), op=99), "99")
    fails(ValueError, lambda: plates.broadcast(mine((1,)), 0.5), "root_rank")


def check_functions_can_be_pickled():
    import horo.numpy as on_numpy

    found = pickle.loads(pickle.dumps(on_numpy.allreduce))
    assert found([2.0]).tolist() == [2.0]
