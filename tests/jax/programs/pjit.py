# SPDX-License-Identifier: Apache-2.0
"""A program for several processes that knows only jax. Its collectives are those that the environment
chooses. Processes form a square, so that collectives of rows and of columns run, too."""

import os

import jax
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.distributed.initialize(
    os.environ["JAX_COORDINATOR_ADDRESS"],
    int(os.environ["JAX_NUM_PROCESSES"]),
    int(os.environ["JAX_PROCESS_ID"]),
)
SIZE, RANK = jax.process_count(), jax.process_index()
SIDE = 2
MESH = Mesh(numpy.array(jax.devices()).reshape(SIDE, SIZE // SIDE), ("row", "column"))
BOTH = PartitionSpec(("row", "column"))


def spread(whole):
    """The array, divided among the processes."""
    sharding = NamedSharding(MESH, BOTH)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def run(function, whole):
    mapped = jax.shard_map(function, mesh=MESH, in_specs=BOTH, out_specs=BOTH)
    return numpy.asarray(jax.jit(mapped)(spread(whole)).addressable_shards[0].data)


def check(name, found, wanted):
    numpy.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=f"{name} on rank {RANK}")


def main():
    each = 8
    whole = numpy.arange(SIZE * each, dtype="float32")
    parts = whole.reshape(SIZE, each)
    grid = parts.reshape(SIDE, SIZE // SIDE, each)
    row, column = divmod(RANK, SIZE // SIDE)
    axes = ("row", "column")
    for _ in range(3):
        check("psum", run(lambda x: jax.lax.psum(x, axes), whole), parts.sum(0))
        check("pmax", run(lambda x: jax.lax.pmax(x, axes), whole), parts.max(0))
        check("psum of a row", run(lambda x: jax.lax.psum(x, "column"), whole), grid[row].sum(0))
        check("psum of a column", run(lambda x: jax.lax.psum(x, "row"), whole), grid[:, column].sum(0))
    for dtype in ("int32", "uint32", "int8", "float64", "complex64"):
        if dtype != "float64" or jax.config.jax_enable_x64:
            found = run(lambda x: jax.lax.psum(x, axes), (whole % 5).astype(dtype))
            check(dtype, found, (parts % 5).astype(dtype).sum(0))
    gathered = run(lambda x: jax.lax.all_gather(x, axes, tiled=True), whole)
    check("all_gather", gathered, whole)
    scattered = run(lambda x: jax.lax.psum_scatter(x, axes, tiled=True), whole)
    check("psum_scatter", scattered, parts.sum(0).reshape(SIZE, -1)[RANK])
    exchanged = run(lambda x: jax.lax.all_to_all(x, axes, 0, 0, tiled=True), whole)
    check("all_to_all", exchanged, parts.reshape(SIZE, SIZE, -1)[:, RANK].reshape(-1))
    ring = [(i, (i + 1) % SIZE) for i in range(SIZE)]
    check("ppermute", run(lambda x: jax.lax.ppermute(x, axes, ring), whole), parts[RANK - 1])
    some = run(lambda x: jax.lax.ppermute(x, axes, [(0, 1)]), whole)
    check("ppermute of one", some, parts[0] if RANK == 1 else 0 * parts[0])
    matrix = numpy.arange(SIZE * SIZE, dtype="float32").reshape(SIZE, SIZE)
    product = jax.jit(lambda a: (a @ a.T).sum())(spread(matrix))  # the compiler divides it
    check("a product", float(product), (matrix @ matrix.T).sum())
    print(f"rank {RANK}: all right", flush=True)


if __name__ == "__main__":
    main()
