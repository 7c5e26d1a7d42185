# SPDX-License-Identifier: Apache-2.0
"""horo.numpy: every function on arrays and on objects that look like arrays."""

import gc

import numpy

import horo.numpy as horo

REDUCIBLE = "uint8 int8 uint16 int16 int32 int64 float16 float32 float64".split()


def part(rank, dtype, shape):
    count = int(numpy.prod(shape, dtype=int))
    return ((numpy.arange(count) * 7 + rank * 3) % 3 + 1).reshape(shape).astype(dtype)


def parts(dtype, shape):
    return numpy.stack([part(rank, dtype, shape).astype("float64") for rank in range(horo.size())])


def equal(found, wanted):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found, wanted)
    assert numpy.array_equal(found, wanted), (found, wanted)


def fails(kind, function, word):
    try:
        function()
    except kind as error:
        assert word in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}")


class Borrowed:
    """Exports memory by __array_interface__ only."""

    def __init__(self, array):
        self._array = array
        self.__array_interface__ = array.__array_interface__


class Packed:
    """Exports memory by DLPack only."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **keywords):
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def check_allreduce():
    reductions = (
        (horo.Sum, lambda a: a.sum(0)),
        (horo.Min, lambda a: a.min(0)),
        (horo.Max, lambda a: a.max(0)),
        (horo.Product, lambda a: a.prod(0)),
    )
    cases = [
        (dtype, shape, op, reduce)
        for dtype in REDUCIBLE
        for shape in ((), (5,), (3, 4), (0, 2))
        for op, reduce in reductions
    ]
    handles = [
        horo.allreduce_async(part(horo.rank(), dtype, shape), op=op)
        for dtype, shape, op, _ in cases
    ]
    for (dtype, shape, _, reduce), handle in zip(cases, handles):
        wanted = numpy.asarray(reduce(parts(dtype, shape))).astype(dtype)
        equal(horo.synchronize(handle), wanted)


def check_average_and_scales():
    mine = part(horo.rank(), "float64", (6,))
    equal(horo.allreduce(mine, name="mean"), parts("float64", (6,)).mean(0))
    scaled = horo.allreduce(mine, op=horo.Sum, prescale_factor=2.0, postscale_factor=0.5)
    equal(scaled, parts("float64", (6,)).sum(0))


def check_in_place():
    mine = part(horo.rank(), "float32", (4,))
    wanted = parts("float32", (4,)).sum(0).astype("float32")
    assert horo.allreduce_(mine, op=horo.Sum) is mine
    equal(mine, wanted)
    memory = part(horo.rank(), "float32", (4,))
    horo.allreduce_(Borrowed(memory), op=horo.Sum)
    equal(memory, wanted)


def check_looks_like_an_array():
    mine = part(horo.rank(), "float32", (4,))
    wanted = parts("float32", (4,)).sum(0).astype("float32")
    for form in (Borrowed(mine), Packed(mine)):
        equal(horo.allreduce(form, op=horo.Sum), wanted)
    equal(horo.allreduce([1.0, 2.0], op=horo.Sum), numpy.array([1.0, 2.0]) * horo.size())


def check_grouped():
    mine = [part(horo.rank(), "float32", shape) for shape in ((3,), (2, 2))]
    wanted = [parts("float32", shape).sum(0).astype("float32") for shape in ((3,), (2, 2))]
    for found in (
        horo.grouped_allreduce(mine, op=horo.Sum, name="group"),
        horo.synchronize(horo.grouped_allreduce_async(mine, op=horo.Sum)),
        horo.grouped_allreduce_([array.copy() for array in mine], op=horo.Sum),
    ):
        for one, other in zip(found, wanted):
            equal(one, other)


def check_async_and_poll():
    handle = horo.allreduce_async(numpy.ones(3), name="polled")
    while not horo.poll(handle):
        pass
    equal(horo.synchronize(handle), numpy.ones(3))
    handles = [horo.allreduce_async(numpy.full(2, i), op=horo.Sum) for i in range(1100)]
    for i, handle in enumerate(handles):
        equal(horo.synchronize(handle), numpy.full(2, i * horo.size()))


def check_allgather():
    for dtype in REDUCIBLE + ["bool"]:
        mine = part(horo.rank(), dtype, (horo.rank() + 1, 2))
        wanted = numpy.concatenate(
            [part(rank, dtype, (rank + 1, 2)) for rank in range(horo.size())]
        )
        equal(horo.allgather(mine), wanted)
    equal(horo.allgather(numpy.ones((0, 3)), name="nothing"), numpy.ones((0, 3)))


def check_reducescatter():
    n, me = horo.size(), horo.rank()
    for rows in (0, 1, 7, 300):
        share = [rows // n + (rank < rows % n) for rank in range(n)]
        first = sum(share[:me])
        mine = part(me, "float32", (rows, 3))
        wanted = parts("float32", (rows, 3)).sum(0).astype("float32")[first : first + share[me]]
        equal(horo.reducescatter(mine, op=horo.Sum, name=f"rs{rows}"), wanted)
        (found,) = horo.grouped_reducescatter([mine], op=horo.Sum, name=f"grs{rows}")
        equal(found, wanted)
    mine = part(me, "uint16", (2 * n,))
    wanted = parts("uint16", (2 * n,)).max(0).astype("uint16")[2 * me : 2 * me + 2]
    equal(horo.reducescatter(mine, op=horo.Max), wanted)


def check_alltoall():
    n, me = horo.size(), horo.rank()
    for dtype in REDUCIBLE + ["bool"]:
        mine = part(me, dtype, (2 * n, 2))
        wanted = numpy.concatenate(
            [part(rank, dtype, (2 * n, 2))[2 * me : 2 * me + 2] for rank in range(n)]
        )
        equal(horo.alltoall(mine), wanted)
    splits = [(me + target) % 2 for target in range(n)]
    found, received = horo.alltoall(numpy.full((n, 2000), me), splits, name="splits")
    senders = [rank for rank in range(n) if (rank + me) % 2]
    equal(found, numpy.repeat(senders, 2000).reshape(-1, 2000).astype(found.dtype))
    equal(received, numpy.array([(rank + me) % 2 for rank in range(n)], numpy.int32))
    fails(ValueError, lambda: horo.alltoall(numpy.ones(n), [n + 1] + [0] * (n - 1)), "more")
    fails(ValueError, lambda: horo.alltoall(numpy.ones(n), numpy.ones((n, 1))), "whole numbers")


def check_grouped_allgather_and_adasum():
    mine = [part(horo.rank(), "int64", (horo.rank(), 2)), part(horo.rank(), "int64", (3,))]
    found = horo.grouped_allgather(mine, name="group")
    for index, one in enumerate(found):
        shapes = [((rank, 2), (3,))[index] for rank in range(horo.size())]
        wanted = [part(rank, "int64", shape) for rank, shape in enumerate(shapes)]
        equal(one, numpy.concatenate(wanted))
    same = part(0, "float32", (40,))
    equal(horo.allreduce(same, op=horo.Adasum), same)
    truth = numpy.array([horo.rank() == 0, True])
    equal(horo.allreduce(truth, op=horo.Min), numpy.array([horo.size() == 1, True]))


def check_broadcast():
    for root in range(horo.size()):
        for dtype in REDUCIBLE + ["bool"]:
            mine = part(horo.rank(), dtype, (3, 2))
            equal(horo.broadcast(mine, root), part(root, dtype, (3, 2)))
            assert horo.broadcast_(mine, root, name="in_place") is mine
            equal(mine, part(root, dtype, (3, 2)))
    assert horo.broadcast_object({"root": horo.rank()}) == {"root": 0}


def check_strides_and_complex_numbers():
    n = horo.size()
    for dtype in ("float32", "complex64", "complex128"):
        shape = (2 * n, 3)
        everybody = parts("float32", shape).astype(dtype)
        if dtype != "float32":
            everybody = everybody + 1j * everybody[:, :, ::-1]
        everybody = everybody.astype(dtype)
        wide = numpy.zeros((2 * n, 6), dtype)
        wide[:, ::2] = everybody[horo.rank()]
        for mine in (numpy.asfortranarray(everybody[horo.rank()]), wide[:, ::2]):
            total = everybody.sum(0)
            assert numpy.allclose(horo.allreduce(mine, op=horo.Sum), total)
            assert numpy.allclose(horo.grouped_allreduce([mine], op=horo.Sum)[0], total)
            equal(horo.allgather(mine), numpy.concatenate(everybody))
            equal(horo.broadcast(mine, n - 1), everybody[n - 1])
            own = slice(2 * horo.rank(), 2 * horo.rank() + 2)
            assert numpy.allclose(horo.reducescatter(mine, op=horo.Sum), total[own])
            equal(horo.alltoall(mine)[:2], everybody[0][own])
            assert horo.allreduce_(mine, op=horo.Sum) is mine
            assert numpy.allclose(mine, total)
            assert horo.broadcast_(mine, 0) is mine
    assert not wide[:, 1::2].any()
    fails(ValueError, lambda: horo.allgather(numpy.complex64(1j)), "dimension")


def check_byte_orders():
    """Arrays from files may have another byte order than this machine."""
    n, r = horo.size(), horo.rank()
    for dtype in ("<f4", ">f4", ">i4", ">u2", ">c8"):
        mine = numpy.array([[200 + r, 2], [1000, 3]], dtype)
        total = numpy.array([[200 * n + n * (n - 1) // 2, 2 * n], [1000 * n, 3 * n]], dtype)
        equal(horo.allreduce(mine, op=horo.Sum), total)
        equal(horo.grouped_allreduce([mine, mine], op=horo.Sum)[1], total)
        equal(horo.allgather(mine)[2 * r : 2 * r + 2], mine)
        own = 2 // n + (r < 2 % n)
        start = r * (2 // n) + min(r, 2 % n)
        equal(horo.reducescatter(mine, op=horo.Sum), total[start : start + own])
        equal(horo.alltoall(mine, [2 if i == r else 0 for i in range(n)])[0], mine)
        kept = mine.copy()
        assert horo.allreduce_(kept, op=horo.Sum) is kept
        equal(kept, total)
        assert horo.broadcast_(mine, 0) is mine and mine[0, 0] == 200, mine


def check_wrong_arguments():
    fails(ValueError, lambda: horo.allreduce(numpy.ones(3, complex), op=horo.Max), "complex128")
    fails(ValueError, lambda: horo.allreduce(numpy.array(["a"])), "dtype")
    fails(ValueError, lambda: horo.allreduce_([1, 2]), "list")
    fails(ValueError, lambda: horo.allgather(numpy.float64(1)), "dimension")
    frozen = numpy.ones(3)
    frozen.flags.writeable = False
    fails(ValueError, lambda: horo.allreduce_(frozen), "read-only")


def check_mismatch():
    if horo.size() > 1:
        mine = numpy.ones(2 + horo.rank())
        fails(horo.MismatchError, lambda: horo.allreduce(mine, name="shape"), "shape")


def check_shared_memory():
    mine = horo.shared_empty((100, 30), "float32")
    mine[:] = part(horo.rank(), "float32", (100, 30))
    horo.allreduce_(mine, op=horo.Sum)
    wanted = parts("float32", (100, 30)).sum(0).astype("float32")
    equal(mine, wanted)
    view = mine[3]
    del mine
    gc.collect()
    equal(view, wanted[3])
    for _ in range(300):  # 300 x 8 MiB would not fit
        horo.shared_empty(1 << 20)


def check_position_and_counters():
    assert 0 <= horo.rank() < horo.size() and horo.is_homogeneous()
    before = horo.counters()["tensors"]
    horo.barrier()
    horo.allreduce(numpy.ones(3))
    assert horo.counters()["tensors"] >= before + 1
