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


@pytest.mark.parametrize("ranks", (2, 4))
def test_an_unmodified_program_of_jax_uses_horo(ranks):
    done = job.run(
        ranks,
        [PROGRAM],
        JAX_CPU_COLLECTIVES_IMPLEMENTATION="mpi",
        MPITRAMPOLINE_LIB=mpi_library.path(),
    )
    assert done.code == 0, done.output
    assert all(f"rank {rank}: all right" in done.output for rank in range(ranks)), done.output


def test_a_rank_that_ends_is_an_error_on_the_others():
    code = f"""
import os, sys
sys.argv = [{PROGRAM!r}]
exec(open({PROGRAM!r}).read().split("def main")[0])
whole = numpy.arange(SIZE * 8, dtype="float32")
run(lambda x: jax.lax.psum(x, ("row", "column")), whole)
if RANK == 1:
    os._exit(3)
try:
    run(lambda x: jax.lax.psum(x, ("row", "column")), whole)
except jax.errors.JaxRuntimeError as error:
    assert "rank 1" in str(error), error
    print("rank 0 was told", flush=True)
    os._exit(4)
"""
    done = job.run(
        2,
        ["-c", code],
        JAX_CPU_COLLECTIVES_IMPLEMENTATION="mpi",
        MPITRAMPOLINE_LIB=mpi_library.path(),
    )
    assert done.code != 0 and "rank 0 was told" in done.output, done.output
