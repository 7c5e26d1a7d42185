# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that uses horo.numpy and reads DLPack capsules, and writes down what it sees: results, errors
with all their fields, and what was called. test_fastpath.py runs it with the extension module and with ctypes
only, and compares.

usage: both_ways_arrays.py DIRECTORY
"""

import os
import sys

import numpy

import horo.numpy as horo
from horo import _extension, _handles, _native, _sets
from horo._device import dlpack
from horo._names import declare

LINES = []


def show(label, function):
    """Writes the result of a function, or the error that it raises."""
    try:
        found = function()
        text = f"{found.dtype} {found.shape} {found.tolist()}" if isinstance(found, numpy.ndarray) else repr(found)
    except Exception as error:
        text = f"{type(error).__name__} {error} {sorted(vars(error).items())}"
    LINES.append(f"{label}: {text}")


# -- Arrays ----------------------------------------------------------------------------------------


def arrays(me):
    base = numpy.arange(6, dtype="float32").reshape(2, 3) * me
    for name in ("?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", "g", "F", "D", "S3", "U2", "M8[s]", "O"):
        yield name, base.astype(name) if name not in ("S3", "U2", "M8[s]", "O") else numpy.zeros(2, name)
    yield "big-endian", base.astype(">f4")
    yield "Fortran's order", numpy.asfortranarray(base)
    yield "one row in Fortran's order", numpy.asfortranarray(base[:1])
    yield "every second", base[:, ::2]
    yield "backwards", base[::-1]
    yield "a part", base[1:]
    yield "scalar", base[0, 0].reshape(())
    yield "empty", numpy.zeros((0, 3), "float32")
    yield "repeated", numpy.broadcast_to(base[:1], (2, 3))
    yield "not aligned", numpy.zeros(25, "uint8")[1:].view("float32")
    yield "fields", numpy.zeros(2, [("a", "f4"), ("b", "i4")])
    masked = numpy.ma.masked_array(base.copy())
    yield "masked", masked
    locked = base.copy()
    locked.flags.writeable = False
    yield "read-only", locked
    yield "list", [1.0, 2.0]
    yield "bytes", bytearray(b"abc")


def usual(me):
    for _ in range(2):  # the second time, the signature is known
        for label, array in arrays(me):
            show(f"new {label}", lambda: horo.allreduce(array, name=label, op=horo.Sum))
            show(f"group {label}", lambda: horo.grouped_allreduce([array, array], name=f"g.{label}", op=horo.Sum))
            show(f"gathered {label}", lambda: horo.allgather(array, name=label))
            show(f"root's {label}", lambda: horo.broadcast(array, 0, name=label))
        for label, array in arrays(me):
            show(f"in place {label}", lambda: horo.allreduce_(array, name=f"i.{label}", op=horo.Max))


# -- Declarations ----------------------------------------------------------------------------------


def declarations(me):
    one = numpy.ones(2) * me
    for op in (None, *range(6), True, 1.0, numpy.int64(2), 6, "Sum"):
        show(f"op {op!r}", lambda: horo.allreduce(one, name=f"op {op!r}", op=op))
    for factor in (2, 0.5, numpy.float32(0.25), float("nan"), float("inf"), "2", None):
        show(f"before {factor}", lambda: horo.allreduce(one, name="factors", op=horo.Sum, prescale_factor=factor))
        show(f"after {factor}", lambda: horo.allreduce(one, name="factors", op=horo.Sum, postscale_factor=factor))
    for wire in (None, "bfloat16", "none", "int8"):
        show(f"wire {wire}", lambda: horo.allreduce(one.astype("float32"), name="w", wire_dtype=wire, error_feedback=True))
    for root in (0, 1, 2, -1, 2**40, "0"):
        show(f"root {root}", lambda: horo.broadcast(one, root, name=f"root {root}"))
    show("many dimensions", lambda: horo.allreduce(numpy.ones((1,) * 20), name="dimensions", op=horo.Sum))
    show("root differs", lambda: horo.broadcast(one, me - 1, name="differs"))
    show("no such set", lambda: declare(_sets.names_of(77).record(0, "x"), 0, "float32", (1,)))
    show("no such kind", lambda: declare(_sets.WORLD.record(0, "kind"), 99, "float32", (1,)))
    show("negative", lambda: declare(_sets.WORLD.record(0, "negative"), 0, "float32", (-1,)))
    show("no memory", lambda: declare(_sets.WORLD.record(0, "memory"), 0, "float32", (1,), memory=7))
    for number in range(80):  # more names than HORO_CACHE_CAPACITY, so that old ones are declared again
        show(f"fresh {number % 40}", lambda: horo.allreduce(one, name=f"fresh.{number % 40}", op=horo.Sum))


# -- Capsules --------------------------------------------------------------------------------------


class Strange:
    """The capsule of an array, with fields that no library here writes."""

    def __init__(self, array, **fields):
        self.capsule = array.__dlpack__()
        self.tensor = dlpack.Managed.from_address(dlpack._pointer(self.capsule, b"dltensor")).tensor
        for name, value in fields.items():
            setattr(self.tensor, name, value)


def described(capsule, start=0):
    seen = dlpack.Seen(capsule)
    return seen.address - start, seen.shape, seen.dtype, seen.device, seen.contiguous


def capsules():
    base = numpy.arange(24, dtype="int32").reshape(2, 3, 4)
    start = base.ctypes.data
    parts = [base, base[1:], base[:, ::2], base.T, base[:1, :, :1], base[0, 0, 0].reshape(()), base[:0], base[:, :0]]
    for index, part in enumerate(parts):
        begin = 0 if part.base is None and part is not base else start
        show(f"capsule {index}", lambda: described(part.__dlpack__(), begin)[1:])
    show("address", lambda: described(base[1:].__dlpack__(), start))
    for dtype in ("uint8", "int8", "uint16", "int64", "float16", "float64", "bool", "complex64", "uint32"):
        show(f"type {dtype}", lambda: described(numpy.zeros(2, dtype).__dlpack__())[1:])
    strange = Strange(base, offset=16)
    show("offset", lambda: described(strange.capsule, start))
    strange.tensor.type.lanes = 2
    show("lanes", lambda: described(strange.capsule))
    strange = Strange(base)
    strange.tensor.device.type, strange.tensor.device.index = 2, 3
    strange.tensor.strides = None
    show("device", lambda: described(strange.capsule, start))
    made = dlpack.capsule(start, (2, 3), "bfloat16", (1, 0), owner=base)
    show("own", lambda: described(made, start))
    used = base.__dlpack__()
    keeps = numpy.from_dlpack(type("Once", (), {"__dlpack__": lambda _, **__: used, "__dlpack_device__": lambda _: (1, 0)})())
    show("used", lambda: described(used))
    assert keeps.shape == base.shape
    for wrong in (None, 7, "capsule"):
        show(f"no capsule {wrong}", lambda: described(wrong))


# -- What is called --------------------------------------------------------------------------------


class Plain(numpy.ndarray):
    """An array that notes when Python asks it for its address."""

    asked = 0

    @property
    def ctypes(self):
        Plain.asked += 1
        return super().ctypes


def calls_by_ctypes(me):
    """How often a declaration, an address and a capsule needed ctypes."""
    counts, real = {}, (_native.fast.horo_declare, dlpack._pointer)

    def counted(name, function):
        def call(*arguments):
            counts[name] = counts.get(name, 0) + 1
            return function(*arguments)

        return call

    _native.fast.horo_declare, dlpack._pointer = counted("declare", real[0]), counted("pointer", real[1])
    array = numpy.ones(4).view(Plain)
    horo.allreduce_(array, name="plain", op=horo.Sum)
    horo.grouped_allreduce([array, array], name="plains", op=horo.Sum)
    dlpack.Seen(numpy.ones(2).__dlpack__())
    _native.fast.horo_declare, dlpack._pointer = real
    return counts.get("declare", 0), Plain.asked, counts.get("pointer", 0)


def references(me):
    """Nothing keeps an array, its name or its capsule once it has been used."""
    array, locked, name = numpy.ones(3), numpy.ones(3)[::-1], f"counted.{me}"[:7]
    objects = (array, locked, name, array.dtype)

    def counts():
        return [sys.getrefcount(one) for one in objects] + [len(_handles.PENDING)]

    before = counts()
    for _ in range(100):
        horo.allreduce_(array, name=name, op=horo.Sum)
        horo.allreduce(locked, op=horo.Sum)
        dlpack.Seen(array.__dlpack__())
        show("count", lambda: horo.allreduce(array, name=name, prescale_factor="2"))
        show("count", lambda: dlpack.Seen(name))
    small = [new - old for old, new in zip(before, counts()) if abs(new - old) < 50]
    LINES.append(f"references: {len(small)} of {len(before)} counts stay")


def main(directory):
    horo.init()
    me = horo.rank() + 1
    usual(me)
    declarations(me)
    capsules()
    references(me)
    calls = calls_by_ctypes(me)
    horo.shutdown()
    with open(os.path.join(directory, f"{me}"), "w") as file:
        file.write("\n".join([f"{_extension.absence or 'module'}; ctypes {calls}", *LINES]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
