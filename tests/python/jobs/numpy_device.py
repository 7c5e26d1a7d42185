# SPDX-License-Identifier: Apache-2.0
"""horo.numpy with arrays in device memory that another library exports by DLPack. The library here is a small
one over the software device, in place of CuPy, which needs a GPU: its arrays have streams, a namespace that
makes arrays, and __dlpack__ with the argument for the stream."""

import ctypes
import os

import numpy

import horo.numpy as horo
from expect import fails
from horo._device import dlpack
from horo.errors import StartError

_driver = ctypes.CDLL(os.environ["HORO_GPU_DRIVER"])
_driver.horo_software_device_findings.restype = ctypes.c_size_t
_context = ctypes.c_void_p()
assert _driver.cuInit(0) == 0
assert _driver.cuDevicePrimaryCtxRetain(ctypes.byref(_context), 0) == 0
assert _driver.cuCtxPushCurrent_v2(_context) == 0
NUMBER = ctypes.c_uint64
HIP = hasattr(_driver, "hipInit")  # the software device under the names of HIP's runtime


def _stream():
    made = ctypes.c_void_p()
    assert _driver.cuStreamCreate(ctypes.byref(made), 1) == 0
    return made


OWN = _stream()  # the library's current stream


def _copy(to, source, count):
    assert _driver.cuMemcpyAsync(NUMBER(to), NUMBER(source), ctypes.c_size_t(count), OWN) == 0


class Namespace:
    @staticmethod
    def empty(shape, dtype, device):
        assert device == "device 0"
        return Array(numpy.zeros(shape, dtype))


class Array:
    """An array of the small library."""

    device = "device 0"
    kind = dlpack.ROCM if HIP else dlpack.CUDA

    def __init__(self, values):
        values = numpy.ascontiguousarray(values)
        self.shape, self.dtype = values.shape, values.dtype
        made = NUMBER()
        assert _driver.cuMemAlloc_v2(ctypes.byref(made), ctypes.c_size_t(max(values.nbytes, 1))) == 0
        self.address = made.value
        if values.nbytes:
            _copy(self.address, values.ctypes.data, values.nbytes)

    def __array_namespace__(self):
        return Namespace

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None):
        assert stream == (0 if self.kind == dlpack.ROCM else 1), "the consumer has to say on which stream it uses the array"
        event = ctypes.c_void_p()  # the legacy default stream waits for the library's
        assert _driver.cuEventCreate(ctypes.byref(event), 2) == 0
        assert _driver.cuEventRecord(event, OWN) == 0
        assert _driver.cuStreamWaitEvent(None, event, 0) == 0
        assert _driver.cuEventDestroy_v2(event) == 0
        return dlpack.capsule(self.address, self.shape, self.dtype.name, (self.kind, 0), owner=self)

    def get(self):
        found = numpy.empty(self.shape, self.dtype)
        if found.nbytes:
            _copy(found.ctypes.data, self.address, found.nbytes)
        return found


def own(*shape, dtype="float32"):
    count = int(numpy.prod(shape))
    return (numpy.arange(count) * (horo.rank() + 1) % 9).reshape(shape).astype(dtype)


def same(found, expected):
    assert isinstance(found, Array), type(found)
    numpy.testing.assert_array_equal(found.get(), expected)


def no_findings():
    text = ctypes.create_string_buffer(1 << 16)
    _driver.horo_software_device_findings(text, ctypes.c_size_t(len(text)))
    assert not text.value, text.value.decode()


def check_collectives_of_arrays_on_a_device():
    for seed in range(4):
        plan = f"seed={seed * 8 + horo.rank()} delay={seed * 20}"
        assert _driver.horo_software_device_plan(plan.encode()) == 0
        for dtype in ("float32", "int64", "float16", "bool"):
            op = horo.Max if dtype == "bool" else horo.Sum
            mine = own(40, 3, dtype=dtype)
            same(horo.allreduce(Array(mine), op=op), horo.allreduce(mine, op=op))
        mine = own(7)
        array = Array(mine)
        assert horo.allreduce_(array, op=horo.Average) is array
        same(array, horo.allreduce(mine, op=horo.Average))
        same(horo.broadcast(Array(mine), horo.size() - 1), horo.broadcast(mine, horo.size() - 1))
        mine = own(2 * horo.size() + 1, 2)
        same(horo.reducescatter(Array(mine), op=horo.Sum), horo.reducescatter(mine, op=horo.Sum))
        for rows in (2, 2, 5):
            mine = own(rows + horo.rank(), 3)
            same(horo.allgather(Array(mine), name="rows"), horo.allgather(mine, name="host.rows"))
        splits = [1 + (horo.rank() + other) % 2 for other in range(horo.size())]
        mine = own(sum(splits), 2)
        found, received = horo.alltoall(Array(mine), splits)
        expected, host_received = horo.alltoall(mine, splits)
        same(found, expected)
        numpy.testing.assert_array_equal(received, host_received)
        pair = [own(5), own(3, 3)]
        for found, expected in zip(
            horo.grouped_allreduce([Array(one) for one in pair], op=horo.Sum),
            horo.grouped_allreduce(pair, op=horo.Sum),
        ):
            same(found, expected)
        no_findings()


def check_mistakes():
    fails(
        ValueError,
        lambda: horo.grouped_allreduce([Array(own(3)), own(3)]),
        "the arrays of a group are in the host's memory and on a device",
    )
    other = Array(own(3))
    other.kind = dlpack.CUDA if HIP else dlpack.ROCM
    fails(StartError, lambda: horo.allreduce(other), "this process uses ", "HIP's runtime", "CUDA's driver")
    nowhere = Array(own(3))
    nowhere.__class__ = type("Plain", (Array,), {"__array_namespace__": None})
    fails(ValueError, lambda: horo.allreduce(nowhere), "Plain", "use the operation in place")
    horo.allreduce_(nowhere, op=horo.Min)
    same(nowhere, horo.allreduce(own(3), op=horo.Min))
