# SPDX-License-Identifier: Apache-2.0
"""The sum of an array over the ranks inside jit: horo.jax against jax's own collectives, in turns, in
the same processes.

usage: horo run -np 2 python3 bench/jax_psum.py [--mib 64] [--rounds 15] [--peer gloo] [--donate]

Prints the median time of a call, the processor time that rank 0 spent for it and its page faults, and the
ratios of both times, with the lower and the upper quartile of the rounds' time ratios. A round is one call of
each, in changing order. On a loaded machine the processor time says more. With --donate each call takes the
result of the one before as a donated argument, so that neither needs new memory.
"""

import argparse
import os
import resource
import statistics
import time

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import horo.jax as horo


def peer_sum(mesh, donated):
    """jax's psum over the processes."""
    spec = PartitionSpec("ranks")
    if hasattr(jax, "shard_map"):
        shard_map = jax.shard_map
    else:
        from jax.experimental.shard_map import shard_map
    mapped = shard_map(lambda x: jax.lax.psum(x, "ranks"), mesh=mesh, in_specs=spec, out_specs=spec)
    return jax.jit(mapped, donate_argnums=donated)


class Contender:
    def __init__(self, function, array, donates):
        self._function, self._array, self._donates = function, array, donates

    def call(self):
        """The result of a call."""
        result = jax.block_until_ready(self._function(self._array))
        if self._donates:
            self._array = result
        return result

    def timed(self):
        """(seconds, seconds of processor time, page faults) of a call."""
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        begin, used = time.perf_counter(), time.process_time()
        self.call()
        times = time.perf_counter() - begin, time.process_time() - used
        return *times, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults


def report(times, args, size):
    medians = {
        name: [statistics.median(column) for column in zip(*rows)] for name, rows in times.items()
    }
    for name, (wall, used, faults) in medians.items():
        print(f"{name}: {wall * 1e3:.2f} ms, {used * 1e3:.2f} ms of processor time, {faults:.0f} faults", end="")
        print(f" for {args.mib:g} MiB on {size} ranks")
    ratios = sorted(b[0] / a[0] for a, b in zip(times["horo"], times[args.peer]))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    wall, used = (b / a for a, b in zip(medians["horo"][:2], medians[args.peer]))
    print(
        f"{args.peer} takes {wall:.1f} x as long as horo (quartiles {low:.1f} to {high:.1f}) and "
        f"{used:.1f} x the processor time; jax {jax.__version__}"
    )


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=float, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peer", default="gloo")
    parser.add_argument("--donate", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
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
    donated = (0,) if args.donate else ()
    own_sum = jax.jit(lambda x: horo.allreduce(x, op=horo.Sum), donate_argnums=donated)
    contenders = {
        "horo": Contender(own_sum, ours, args.donate),
        args.peer: Contender(peer_sum(mesh, donated), theirs, args.donate),
    }
    wanted = size * (size + 1) / 2
    for contender in contenders.values():
        result = contender.call()
        assert float(result.addressable_shards[0].data[0]) == wanted
        del result
        contender.call()
    times = {name: [] for name in contenders}
    for number in range(args.rounds):
        order = list(contenders) if number % 2 else list(reversed(contenders))
        for name in order:
            horo.barrier()
            times[name].append(contenders[name].timed())
    if rank == 0:
        report(times, args, size)
    horo.shutdown()


if __name__ == "__main__":
    main()
