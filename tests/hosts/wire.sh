#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Elements that are rounded on their way between two hosts: half the bytes, the same bits on all ranks, full precision inside a
# host, and an error on all ranks where they differ.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
"$HOSTS_PYTHON" -c 'import numpy' 2>/dev/null || skip "$HOSTS_PYTHON has no numpy"
on_hosts 2

cat >"$scratch/wire.py" <<'PY'
import sys
import numpy
import horo.numpy as horo

def sent():
    lines = open("/proc/net/dev").read().splitlines()
    return sum(int(line.split()[9]) for line in lines if ":" in line and not line.strip().startswith("lo:"))

horo.init()
rank = horo.rank()
count = 4 << 20
given = numpy.random.default_rng(rank).standard_normal(count, dtype=numpy.float32)
horo.allreduce(given, name="warm")  # connections, and pages of memory
def measured(**how):
    horo.barrier()
    before = sent()
    result = horo.allreduce(given, name="sum", op=horo.Sum, **how)
    horo.barrier()
    return result, sent() - before

exact, full = measured(wire_dtype="none")
for wire_dtype in ("bfloat16", "float16"):
    result, fewer = measured(wire_dtype=wire_dtype)
    assert numpy.array_equal(result, horo.broadcast(result, 0)), "ranks differ"
    assert 0.45 * full < fewer < 0.55 * full, (fewer, full)
    off = numpy.abs(result - exact).max()
    assert 0 < off < (0.2 if wire_dtype == "bfloat16" else 0.03), off

# The two ranks of a host cancel to 2^-14: a rank's own value would have been rounded to 1 or -1.
tiny = numpy.full(100000, 1 + 2**-14 if rank % 2 == 0 else -1, dtype=numpy.float32)
assert (horo.allreduce(tiny, op=horo.Sum, wire_dtype="bfloat16") == 2**-13).all()

# Small gradients beside large ones get lost, unless the error is fed back.
value = numpy.full(100000, 1 + 2**-12, dtype=numpy.float32)
for feedback in (False, True):
    total = sum(horo.allreduce(value, name=f"{feedback}", wire_dtype="bfloat16", error_feedback=feedback)[7].item()
                for _ in range(256))
    assert (abs(total / 256 - value[0]) < 1e-4) == feedback, total

# The knob, where it is set, is for large tensors.
by_knob, bytes_by_knob = measured()
assert (bytes_by_knob < 0.55 * full) == ("knob" in sys.argv), (bytes_by_knob, full)
few = numpy.full(1023, 1 + 2**-14, dtype=numpy.float32)
assert (horo.allreduce(few) == few).all()

try:
    horo.allreduce(value, name="differs", wire_dtype="bfloat16" if rank < 2 else "float16")
    assert False
except horo.MismatchError as error:
    assert error.subject == "wire_dtype", error.subject
    assert "bfloat16 on ranks 0, 1" in str(error) and "float16 on ranks 2, 3" in str(error), str(error)
try:
    horo.allreduce(value, op=horo.Max, wire_dtype="bfloat16")
    assert False
except horo.HoroError as error:
    assert "leave wire_dtype at none" in str(error), str(error)
if rank == 0:
    print("done")
PY
for operations in tcp gloo; do
  try timeout 100 env HORO_CPU_OPERATIONS=$operations horo run -H h1:2,h2:2 --tag off "$HOSTS_PYTHON" "$scratch/wire.py"
  expect "output over $operations: $err" "$out" "done"
done
try timeout 100 horo run -H h1:2,h2:2 --wire-dtype bfloat16 --tag off "$HOSTS_PYTHON" "$scratch/wire.py" knob
expect "output with the knob: $err" "$out" "done"
# Ranks of one host round nothing.
cat >"$scratch/alone.py" <<'PY'
import numpy
import horo.numpy as horo
horo.init()
value = numpy.full(100000, 1 + 2**-12, dtype=numpy.float32)
assert (horo.allreduce(value, wire_dtype="bfloat16", error_feedback=True) == value).all()
PY
try timeout 100 horo run -np 2 --tag off "$HOSTS_PYTHON" "$scratch/alone.py"
expect "exit code on one host: $err" "$code" 0
nothing_left h1 h2
exit 0
