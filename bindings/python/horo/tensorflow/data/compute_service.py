# SPDX-License-Identifier: Apache-2.0
"""The training's side of a data service, and what it has to know of the compute job."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from horo import errors
from horo.tensorflow.data import _registry

if TYPE_CHECKING:
    from collections.abc import Iterator

SIDES = ("compute", "training")


@dataclasses.dataclass(frozen=True)
class TfDataServiceConfig:
    """How a training finds its data service. `dispatcher_side`: whose processes run the dispatchers,
    "compute" or "training". `address`: of the compute job's table. `timeout`: in seconds."""

    dispatchers: int
    workers_per_dispatcher: int
    dispatcher_side: str
    address: str
    key: bytes
    timeout: int = 60

    def __post_init__(self) -> None:
        if self.dispatcher_side not in SIDES:
            raise ValueError(f"dispatcher_side {self.dispatcher_side!r} is not one of {SIDES}")
        if self.dispatchers < 1 or self.workers_per_dispatcher < 1:
            raise ValueError("a data service needs at least one dispatcher and one worker for each")

    def to_dict(self) -> dict[str, Any]:
        """The values, as JSON knows them."""
        return {**dataclasses.asdict(self), "key": base64.b64encode(self.key).decode("ascii")}

    @staticmethod
    def from_dict(config: dict[str, Any]) -> TfDataServiceConfig:
        """The opposite of to_dict()."""
        values: dict[str, Any] = {**config, "key": base64.b64decode(config["key"])}
        return TfDataServiceConfig(**values)

    def write(self, filename: str) -> None:
        """Writes a file that only its user can read, because it has the key. The folder may be one where
        others can make files."""
        folder, name = os.path.split(os.path.abspath(filename))
        number, part = tempfile.mkstemp(prefix=f"{name}.", dir=folder)
        with open(number, "w") as file:
            json.dump(self.to_dict(), file)
        os.replace(part, filename)

    @staticmethod
    def read(filename: str, wait_for_file_creation: bool = False) -> TfDataServiceConfig:
        """Reads the file, and may wait until the compute job has written it."""
        while wait_for_file_creation and not os.path.exists(filename):
            time.sleep(0.1)
        with open(filename) as file:
            return TfDataServiceConfig.from_dict(json.load(file))


def start_dispatcher(config: TfDataServiceConfig, number: int) -> Any:
    """Starts dispatcher `number` in this process, and tells its address."""
    made = tf.data.experimental.service.DispatchServer()
    port = made.target.rpartition(":")[2]
    target = f"grpc://{_registry.own_host()}:{port}"
    _registry.put(config.address, config.key, f"dispatcher {number}", target)
    return made


@contextlib.contextmanager
def tf_data_service(compute_config: TfDataServiceConfig, rank: int) -> Iterator[str]:
    """Gives the address of this rank's dispatcher, for tf.data.experimental.service.distribute(), once
    all of its workers are there. At the end, rank 0 ends the service. Fails: TimeOutError."""
    config, dispatcher = compute_config, None
    try:
        if config.dispatcher_side == "training" and rank < config.dispatchers:
            dispatcher = start_dispatcher(config, rank)
        number = rank % config.dispatchers
        ask = (config.address, config.key)
        address = _registry.wait(*ask, f"dispatcher {number}", config.timeout)
        for worker in range(config.workers_per_dispatcher):
            _registry.wait(*ask, f"worker {number}.{worker}", config.timeout)
        yield address
    finally:
        if rank == 0:
            with contextlib.suppress(errors.HoroError):  # the compute job has ended already
                _registry.put(config.address, config.key, _registry.STOP, True)
        del dispatcher


def send_to_data_service(
    dataset: Any,
    compute_config: TfDataServiceConfig,
    rank: int,
    size: int | None = None,
    reuse_dataset: bool = False,
    round_robin: bool = False,
) -> Any:
    """The dataset, computed by the data service, which then lives until the compute job ends.
    `reuse_dataset`: all ranks share one pass over the data. `round_robin`: the ranks, `size` of them,
    take elements in turns; the dataset must repeat for ever. Fails: TimeOutError, ValueError."""
    if round_robin and (size is None or not reuse_dataset):
        raise ValueError("round_robin needs size= and reuse_dataset=True")
    if size is not None and size % compute_config.dispatchers:
        raise ValueError(
            f"{size} ranks cannot be divided among {compute_config.dispatchers} dispatchers; "
            "use a number of ranks that is a multiple"
        )
    opened = tf_data_service(compute_config, rank)
    address = opened.__enter__()
    _open.append(opened)
    distribute = tf.data.experimental.service.distribute
    turns = {"consumer_index": rank // compute_config.dispatchers} if round_robin else {}
    if round_robin and size is not None:
        turns["num_consumers"] = size // compute_config.dispatchers
    mode = "parallel_epochs" if round_robin else "distributed_epoch"
    job = "job" if reuse_dataset else None
    return dataset.apply(distribute(mode, address, job_name=job, **turns))


_open: list[Any] = []  # services that live as long as the process
