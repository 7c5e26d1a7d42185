# SPDX-License-Identifier: Apache-2.0
"""A strategy of Lightning over the backend horo of torch.distributed."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from horo.errors import LibraryError
from horo.lightning._environment import is_started_by_horo, make_environment

NAMES = ("horo", "horovod")
OLDEST = 2
NEEDS = "horo.lightning needs Lightning 2 or newer: pip install lightning"
_PACKAGES = ("lightning", "pytorch_lightning")
_Base: Any = object  # in the subclass, DDPStrategy follows


class _OnHoro(_Base):
    """DistributedDataParallel, whose gradients Horo reduces. Takes the options of DDPStrategy, which follows in the
    order of the subclass's bases."""

    strategy_name = NAMES[0]
    environment: Any = None  # the class of the subclass's package

    def __init__(self, *arguments, **options):
        import horo.torch.distributed  # noqa: F401  # registers the backend

        backend = "cpu:horo,cuda:nccl" if torch.cuda.is_available() else "horo"
        options.setdefault("process_group_backend", backend)
        if options.get("cluster_environment") is None and is_started_by_horo():
            options["cluster_environment"] = self.environment()
        super().__init__(*arguments, **options)

    @property
    def _is_external(self):
        return isinstance(self.cluster_environment, self.environment)

    @property
    def root_device(self):
        """The Trainer's devices are those of one rank, or of all ranks of a host."""
        devices = self.parallel_devices
        if not self._is_external or not devices:
            return super().root_device
        return devices[self.local_rank % len(devices)]

    @property
    def distributed_sampler_kwargs(self):
        if not self._is_external:
            return super().distributed_sampler_kwargs
        return {"num_replicas": self.world_size, "rank": self.global_rank}

    def determine_ddp_device_ids(self):
        """None for the CPU, as DistributedDataParallel wants it."""
        return None if self.root_device.type == "cpu" else [self.root_device.index]

    @classmethod
    def register_strategies(cls, registry):
        for name in NAMES:
            registry.register(name, cls, description=_OnHoro.__doc__)


def make_strategy(strategies, environments):
    """The class, for one of Lightning's packages: its modules `strategies` and `environments`."""
    members = {"environment": make_environment(environments.ClusterEnvironment)}
    return type("HoroStrategy", (_OnHoro, strategies.DDPStrategy), members)


def _is_old(package):
    """Whether Lightning's package is too old. Fails: ModuleNotFoundError (it is not installed)."""
    version = str(getattr(importlib.import_module(package), "__version__", OLDEST))
    return int(version.partition(".")[0]) < OLDEST, f"{package} {version}"


def register() -> None:
    """Registers the strategy in Lightning's packages that are installed. Fails: LibraryError (none is, or
    only older ones are)."""
    found, refused = [], []
    for package in _PACKAGES:
        base = f"{package}.pytorch" if package == "lightning" else package
        try:
            is_old, version = _is_old(package)
            if is_old:
                refused.append(version)
                continue
            strategies = importlib.import_module(f"{base}.strategies")
            environments = importlib.import_module(f"{base}.plugins.environments")
        except ModuleNotFoundError as error:
            if error.name not in (package, base):
                raise
            continue
        found.append(package)
        registry = strategies.StrategyRegistry
        if NAMES[0] not in registry:
            make_strategy(strategies, environments).register_strategies(registry)
    if not found:
        raise LibraryError("; this is ".join([NEEDS, *refused[:1]]))
