# SPDX-License-Identifier: Apache-2.0
"""Programs that know only jax run on Horo's shared memory, through the MPI inside jaxlib."""

import os

import jax
import pytest

import job
from horo.jax import mpi_library

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "pjit.py")
pytestmark = pytest.mark.skipif(
    not hasattr(jax, "shard_map"), reason="the program needs jax.shard_map, which came with jax 0.6"
)


ALL = '("row", "column")'


def run(ranks, arguments):
    return job.run(
        ranks,
        arguments,
        limit=120,  # less than jax waits at its end
        JAX_CPU_COLLECTIVES_IMPLEMENTATION="mpi",
        MPITRAMPOLINE_LIB=mpi_library.path(),
    )


def run_code(code):
    """Runs code after the parts of the program that come before its main()."""
    start = f"""
import os, sys
sys.argv = [{PROGRAM!r}]
exec(open({PROGRAM!r}).read().split("def main")[0])
whole = numpy.arange(SIZE * 8, dtype="float32")
run(lambda x: jax.lax.psum(x, {ALL}), whole)
"""
    return run(2, ["-c", start + code])


@pytest.mark.parametrize("ranks", (2, 4))
def test_an_unmodified_program_of_jax_uses_horo(ranks):
    done = run(ranks, [PROGRAM])
    assert done.code == 0, done.output
    assert all(f"rank {rank}: all right" in done.output for rank in range(ranks)), done.output


@pytest.mark.parametrize("end", ("os._exit(3)", "sys.exit(0)", "raise RuntimeError('it gives up')"))
def test_a_rank_that_ends_is_an_error_on_the_others(end):
    """Also while it waits in jax's barrier at the end, which the others have not reached."""
    done = run_code(f"""
if RANK == 1:
    {end}
try:
    run(lambda x: jax.lax.psum(x, {ALL}), whole)
except jax.errors.JaxRuntimeError as error:
    assert "rank 1" in str(error), error
    print("rank 0 was told", flush=True)
    raise
""")
    assert done.code != 0 and "rank 0 was told" in done.output, done.output
    if "raise" in end:
        assert "rank 1 on localhost failed first" in done.output, done.output


def test_programs_that_run_when_a_rank_ends_are_finished():
    done = run_code(f"""
def busy(x):
    return jax.lax.fori_loop(0, 30, lambda _, y: jax.numpy.tanh(y @ y), x)

mapped = jax.shard_map(lambda x: jax.lax.psum(busy(x), {ALL}), mesh=MESH, in_specs=BOTH, out_specs=BOTH)
step, x = jax.jit(mapped), spread(numpy.ones((SIZE * 300, 300), "float32"))
for _ in range(10):
    x = step(x)
if RANK == 0:
    numpy.asarray(x.addressable_shards[0].data)
    print("rank 0 has its result", flush=True)
""")
    assert done.code == 0 and "rank 0 has its result" in done.output, done.output


REFUSED = """
import ctypes, sys

mpi = ctypes.CDLL(sys.argv[1])
number = lambda name: ctypes.c_size_t.in_dll(mpi, name).value
INT, WORLD = number("MPIABI_INT"), number("MPIABI_COMM_WORLD")
assert mpi.MPIABI_Init(None, None) == 0
rank = ctypes.c_int()
mpi.MPIABI_Comm_rank(ctypes.c_size_t(WORLD), ctypes.byref(rank))


def begin(function, data, peer):
    request = ctypes.c_size_t()
    rest = ctypes.c_size_t(INT), peer, 0, ctypes.c_size_t(WORLD), ctypes.byref(request)
    return function(data, len(data), *rest), request


def wait(request):
    return mpi.MPIABI_Wait(ctypes.byref(request), None)


def numbers(*values):
    return (ctypes.c_int * len(values))(*values)


if rank.value == 0:
    given_up, received = numbers(7, 7), numbers(0, 0)
    code, first = begin(mpi.MPIABI_Irecv, given_up, 1)
    assert code == 0
    code, _ = begin(mpi.MPIABI_Isend, numbers(1, 2), 99)
    assert code != 0, "there is no rank 99"
    code, second = begin(mpi.MPIABI_Irecv, received, 1)
    assert code == 0 and wait(second) == 0
    assert list(received) == [3, 4] and list(given_up) == [7, 7], (list(received), list(given_up))
    assert wait(first) != 0, "it was given up"
else:
    code, sent = begin(mpi.MPIABI_Isend, numbers(3, 4), 0)
    assert code == 0 and wait(sent) == 0
print("all right", flush=True)
"""


def test_messages_before_a_refused_one_are_given_up():
    done = job.run(2, ["-c", REFUSED, mpi_library.path()], limit=120)
    assert done.code == 0 and done.output.count("all right") == 2, done.output
