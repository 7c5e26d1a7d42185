# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that uses horo.torch in usual and unusual ways and writes down what it sees: results,
errors with all their fields, and the counts of references that stay. test_fastpath.py runs it with the
extension module and with ctypes only, and compares.

usage: both_ways.py DIRECTORY
"""

import os
import sys
import warnings

import torch

import horo.torch as horo
from horo import _extension, _handles

LINES = []


def write(label, text):
    LINES.append(f"{label}: {text}")


def described(found):
    if isinstance(found, torch.Tensor):
        return f"{type(found).__name__} {found.dtype} {list(found.shape)} {found.stride()} {found.tolist()}"
    if isinstance(found, (list, tuple)):
        return " ".join(map(described, found))
    return repr(found)


def show(label, function):
    """Writes the result of a function, or the error that it raises."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            text = described(function())
        except Exception as error:
            fields = sorted(vars(error).items())
            text = f"{type(error).__name__} {error} {fields}"
    write(label, text + "".join(f" {one.category.__name__}" for one in warned))


def at_once(tensor, **options):
    return horo.synchronize(horo.allreduce_async_(tensor, **options))


class Noted(torch.Tensor):
    """A tensor that notes which functions are applied to it."""

    seen = set()

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.seen.add(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, args, kwargs or {})


def tensors(me):
    """(label, tensor) pairs."""
    base = torch.arange(6.0).reshape(2, 3) * me
    imaginary = torch.complex(torch.zeros(1), torch.ones(1)).conj().imag
    for dtype in "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 bool".split():
        yield dtype, torch.ones(3, dtype=getattr(torch, dtype))
    yield "scalar", torch.tensor(2.0)
    yield "empty", torch.empty(0, 4)
    yield "rows", base.clone()
    yield "strided", base.clone().t()
    yield "view", torch.arange(10.0)[2:5]
    yield "expanded", torch.ones(1).expand(3)
    yield "complex", torch.complex(base, -base)
    yield "conjugate", torch.complex(base, -base).conj()
    yield "negated", torch._neg_view(base.clone())
    yield "imaginary", imaginary
    yield "parameter", torch.nn.Parameter(base.clone())
    yield "leaf", base.clone().requires_grad_()
    yield "noted", base.clone().as_subclass(Noted)
    yield "sparse", base.to_sparse()
    yield "meta", torch.ones(2, device="meta")
    yield "quantised", torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    yield "list", [1.0]
    yield "none", None


def usual(me):
    for _ in range(2):  # the second time, the signature is known
        for label, tensor in tensors(me):
            show(f"in place {label}", lambda: at_once(tensor, name=label, op=horo.Sum))
        for label, tensor in tensors(me):
            show(f"new {label}", lambda: horo.synchronize(horo.allreduce_async(tensor, op=horo.Sum)))
        for label, tensor in tensors(me):
            show(f"synchronous {label}", lambda: horo.allreduce_(tensor, name=f"s.{label}"))
    write("subclass", sorted(Noted.seen & {"data_ptr", "is_contiguous", "__get__"}))


def arguments(me):
    one = torch.ones(2) * me
    known = (horo.Average, horo.Sum, horo.Min, horo.Max, horo.Product, horo.Adasum)
    for op in (None, *known, True, 6, -1, 2**70, "Sum", 1.0):
        show(f"op {op!r}", lambda: at_once(one.clone(), name=f"op {op!r}", op=op))
    for average in (True, False):
        show(f"average {average}", lambda: at_once(one.clone(), average=average))
        show(f"both {average}", lambda: at_once(one.clone(), average=average, op=horo.Sum))
    for factor in (2, 0.5, float("nan"), "2", None):
        options = {"op": horo.Sum, "name": "factors"}
        show(f"before {factor}", lambda: at_once(one.clone(), prescale_factor=factor, **options))
        show(f"after {factor}", lambda: at_once(one.clone(), postscale_factor=factor, **options))
    for wire in ("bfloat16", torch.float16, "none", "int8"):
        show(f"wire {wire}", lambda: at_once(one.clone(), wire_dtype=wire, error_feedback=False))
    for name in ("", "a b", "a\0b", 7, None, b"bytes", ("pair",)):
        show(f"name {name!r}", lambda: at_once(one.clone(), name=name))
    for shape in ((4,), (2, 2), (4,), (1, 4)):
        show(f"shape {shape}", lambda: at_once(torch.ones(shape), name="shape", op=horo.Sum))
    for dtype in (torch.int32, torch.float64):
        show(f"dtype {dtype}", lambda: at_once(torch.ones(4, dtype=dtype), name="shape"))
    show("without arguments", lambda: horo.allreduce_async_())
    show("a set", lambda: at_once(one.clone(), process_set=horo.ProcessSet([0])))


def until_done(handle):
    while not horo.poll(handle):
        pass
    return horo.poll(handle)


def handles(me):
    show("unknown", lambda: horo.synchronize(12345))
    show("no handle", lambda: horo.synchronize(None))
    show("unhashable", lambda: horo.synchronize([]))
    show("poll unknown", lambda: horo.poll(12345))
    handle = horo.allreduce_async_(torch.ones(2), name="h", op=horo.Sum)
    show("by name", lambda: horo.synchronize(handle=handle))
    show("again", lambda: horo.synchronize(handle))
    show("poll again", lambda: type(horo.poll(horo.allreduce_async_(torch.ones(2), name="polled"))))
    show("poll no handle", lambda: horo.poll(None))
    show("poll unhashable", lambda: horo.poll([]))
    show("poll another", lambda: horo.poll(2**70))
    polled = horo.allreduce_async_(torch.ones(2), name="polled by name", op=horo.Sum)
    show("poll by name", lambda: type(horo.poll(handle=polled)))
    show("poll until done", lambda: until_done(polled))
    show("poll waited for", lambda: (horo.synchronize(polled), horo.poll(polled)))
    several = horo.grouped_allreduce_async_([torch.ones(2), torch.ones(1)], name="polled group", op=horo.Sum)
    show("poll group", lambda: until_done(several))
    show("polled group", lambda: horo.synchronize(several))
    group = [torch.ones(2) * i * me for i in range(5)]
    show("group", lambda: horo.grouped_allreduce_(group, name="g", op=horo.Sum))
    show("group again", lambda: horo.grouped_allreduce_(group, name="g", op=horo.Sum))
    show("group with strides", lambda: horo.grouped_allreduce([torch.ones(2, 3).t(), torch.ones(1)]))
    show("gathered", lambda: horo.grouped_allgather([torch.full((me, 2), me), torch.ones(1)]))
    show("rows", lambda: horo.alltoall(torch.arange(4) * me, splits=[1, 3], name="rows"))
    show("broadcast", lambda: horo.broadcast_(torch.full((3,), me), 1, name="b"))
    show("barrier", horo.barrier)
    show("scattered", lambda: horo.reducescatter(torch.ones(5, 2) * me, op=horo.Sum))


def failures(me):
    """Rank 1 takes part only after rank 0 has asked twice."""
    one = torch.ones(2)
    if me == 1:
        handle = horo.allreduce_async_(one, name="twice", op=horo.Sum)
        show("twice", lambda: horo.allreduce_async_(torch.ones(2), name="twice", op=horo.Sum))
        member = horo.allreduce_async_(torch.ones(1), name="half.1", op=horo.Sum)
        pair = [torch.ones(1), torch.ones(1)]
        show("half a group", lambda: horo.grouped_allreduce_async_(pair, name="half", op=horo.Sum))
    horo.allreduce(torch.ones(1), name="go")
    if me == 2:
        handle = horo.allreduce_async_(one, name="twice", op=horo.Sum)
        member = horo.allreduce_async_(torch.ones(1), name="half.1", op=horo.Sum)
    show("member", lambda: horo.synchronize(member))
    show("once", lambda: horo.synchronize(handle))
    show("ranks differ", lambda: at_once(torch.ones(me), name="differ"))
    show("ranks agree", lambda: at_once(torch.ones(3), name="differ"))
    show("operations differ", lambda: at_once(torch.ones(3), name="ops", op=horo.Sum if me == 1 else horo.Max))
    for number in range(40):  # more names than HORO_CACHE_CAPACITY
        show(f"fresh {number}", lambda: at_once(torch.ones(number % 3 + 1), name=f"fresh.{number}"))
    for number in range(40):
        show(f"evicted {number}", lambda: at_once(torch.ones(number % 3 + 1), name=f"fresh.{number}"))
    show("evicted group", lambda: horo.grouped_allreduce_([torch.ones(2)] * 3, name="g", op=horo.Sum))


def references(me):
    """Nothing keeps a tensor, its name or its storage once its operation has been waited for."""
    tensor, name = torch.ones(3), f"counted.{me}"[:7]
    objects = (tensor, name, tensor.dtype, horo.Sum, horo.global_process_set)

    def counts():
        return [sys.getrefcount(one) for one in objects] + [len(_handles.PENDING)]

    at_once(tensor, name=name, op=horo.Sum)
    before = counts()
    for _ in range(100):
        at_once(tensor, name=name, op=horo.Sum)
        horo.synchronize(horo.allreduce_async(tensor, name=name, op=horo.Sum))
        horo.allreduce_(tensor, name=name, op=horo.Sum)
        show("count", lambda: horo.allreduce_async_(tensor, name="a\0"))
        show("count", lambda: horo.allreduce_async_(tensor.to_sparse(), name=name))
    after = counts()
    small = [new - old for old, new in zip(before, after) if abs(new - old) < 50]
    write("references", f"{len(small)} of {len(before)} counts stay")


def main(directory):
    show("before init", lambda: at_once(torch.ones(1), name="early"))
    show("before init, waiting", lambda: horo.synchronize(1))
    horo.init()
    me = horo.rank() + 1
    for part in (usual, arguments, handles, failures, references):
        part(me)
    horo.shutdown()
    show("after shutdown", lambda: at_once(torch.ones(1), name="late"))
    with open(os.path.join(directory, f"{me}"), "w") as file:
        file.write("\n".join([_extension.absence or "module", *LINES]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
