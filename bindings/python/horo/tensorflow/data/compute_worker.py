# SPDX-License-Identifier: Apache-2.0
"""The processes that compute data for a training:

    horo run -np 4 python3 -m horo.tensorflow.data.compute_worker [--dispatchers 1] config.json

Rank 0 writes config.json, which the training reads.
"""

from __future__ import annotations

import argparse
import os

import tensorflow as tf

import horo.tensorflow as horo
from horo.tensorflow.data import _registry
from horo.tensorflow.data.compute_service import SIDES, TfDataServiceConfig, start_dispatcher


def compute_worker_fn(compute_config: TfDataServiceConfig) -> None:
    """One worker, on each rank of the compute job. Returns when the training has ended the service."""
    config, rank = compute_config, horo.rank()
    number, worker = divmod(rank, config.workers_per_dispatcher)
    dispatcher = None
    if config.dispatcher_side == "compute" and worker == 0:
        dispatcher = start_dispatcher(config, number)
    ask = (config.address, config.key)
    address = _registry.wait(*ask, f"dispatcher {number}", config.timeout)
    service = tf.data.experimental.service
    server = service.WorkerServer(
        service.WorkerConfig(
            dispatcher_address=address.partition("://")[2],
            worker_address=f"{_registry.own_host()}:%port%",
        )
    )
    _registry.put(*ask, f"worker {number}.{worker}", True)
    _registry.wait(*ask, _registry.STOP, None)
    del server, dispatcher


def main(
    dispatchers: int, dispatcher_side: str, configfile: str, timeout: int, force: bool = False
) -> None:
    """Runs the compute job's rank in this process."""
    horo.init()
    registry, made = None, None
    if horo.size() % dispatchers:
        raise ValueError(
            f"{horo.size()} workers cannot be divided among {dispatchers} dispatchers; use a number of "
            "ranks that is a multiple"
        )
    if horo.rank() == 0:
        if os.path.exists(configfile) and not force:
            raise FileExistsError(f"{configfile} exists: remove it, or use --force")
        key = os.urandom(32)
        registry = _registry.Registry(key)
        address = f"{_registry.own_host()}:{registry.port}"
        workers = horo.size() // dispatchers
        made = TfDataServiceConfig(dispatchers, workers, dispatcher_side, address, key, timeout)
        made.write(configfile)
    config: TfDataServiceConfig = horo.broadcast_object(made, 0, name="data.config")
    try:
        compute_worker_fn(config)
        horo.barrier()  # rank 0 has the table
    finally:
        if registry is not None:
            registry.close()
            os.unlink(configfile)


def _parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configfile", help="the file that the training reads")
    parser.add_argument("--dispatchers", type=int, default=1)
    parser.add_argument("--dispatcher-side", choices=SIDES, default="compute")
    parser.add_argument("--timeout", type=int, default=60, help="in seconds")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    return parser.parse_args()


if __name__ == "__main__":
    given = _parse()
    main(given.dispatchers, given.dispatcher_side, given.configfile, given.timeout, given.force)
