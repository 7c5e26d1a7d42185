# SPDX-License-Identifier: Apache-2.0
"""The sum of an array over the ranks inside jit: horo.jax against jax's own collectives, in turns, in
the same processes.

usage: horo run -np 2 python3 bench/jax_psum.py [--mib 64] [--rounds 15] [--peer gloo]

Prints the median time of a call and the processor time that rank 0 spent for it, and the ratios of both,
with the lower and the upper quartile of the rounds' time ratios. A round is one call of each, in changing
order. On a loaded machine the processor time says more.
"""

import argparse
import os
import statistics
import time

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import horo.jax as horo


def peer_sum(mesh):
    """jax's psum over the processes."""
    spec = PartitionSpec("ranks")
    if hasattr(jax, "shard_map"):
        shard_map = jax.shard_map
    else:
        from jax.experimental.shard_map import shard_map
    mapped = shard_map(lambda x: jax.lax.psum(x, "ranks"), mesh=mesh, in_specs=spec, out_specs=spec)
    return jax.jit(mapped)


def timed(function, array):
    """(seconds, seconds of processor time) of a call."""
    begin, used = time.perf_counter(), time.process_time()
    jax.block_until_ready(function(array))
    return time.perf_counter() - begin, time.process_time() - used


def report(times, args, size):
    medians = {
        name: [statistics.median(column) for column in zip(*rows)] for name, rows in times.items()
    }
    for name, (wall, used) in medians.items():
        print(f"{name}: {wall * 1e3:.2f} ms, {used * 1e3:.2f} ms of processor time", end="")
        print(f" for {args.mib:g} MiB on {size} ranks")
    ratios = sorted(b[0] / a[0] for a, b in zip(times["horo"], times[args.peer]))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    wall, used = (b / a for a, b in zip(medians["horo"], medians[args.peer]))
    print(
        f"{args.peer} takes {wall:.1f} x as long as horo (quartiles {low:.1f} to {high:.1f}) and "
        f"{used:.1f} x the processor time; jax {jax.__version__}"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=float, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peer", default="gloo")
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", args.peer)
    rank, size = int(os.environ["HORO_RANK"]), int(os.environ["HORO_SIZE"])
    jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], size, rank)
    horo.init(compilation_cache=False)

    own = numpy.full(int(args.mib * 2**20 / 4), rank + 1, "float32")
    mesh = Mesh(numpy.array(jax.devices()), ("ranks",))
    spread = NamedSharding(mesh, PartitionSpec("ranks"))
    shape = (size * len(own),)
    theirs = jax.make_array_from_single_device_arrays(
        shape, spread, [jax.device_put(own, jax.local_devices()[0])]
    )
    ours = jax.device_put(own, jax.local_devices()[0])
    contenders = {
        "horo": (jax.jit(lambda x: horo.allreduce(x, op=horo.Sum)), ours),
        args.peer: (peer_sum(mesh), theirs),
    }
    wanted = size * (size + 1) / 2
    for function, array in contenders.values():
        result = jax.block_until_ready(function(array))
        assert float(result.addressable_shards[0].data[0]) == wanted
        timed(function, array)
    times = {name: [] for name in contenders}
    for number in range(args.rounds):
        order = list(contenders) if number % 2 else list(reversed(contenders))
        for name in order:
            horo.barrier()
            times[name].append(timed(*contenders[name]))
    if rank == 0:
        report(times, args, size)
    horo.shutdown()


if __name__ == "__main__":
    main()
